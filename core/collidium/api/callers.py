"""From where a request comes."""

from __future__ import annotations

from quart import request


def caller_address(proxies: int) -> str:
    """Return the IP address of the caller, behind that many proxies of ours.

    ``X-Forwarded-For`` is anybody's to write, but for the entries that our proxies added: the last ones.
    """
    passed = ",".join(request.headers.getlist("X-Forwarded-For")).split(",") if proxies else []
    if len(passed) >= proxies > 0:
        return passed[-proxies].strip()
    return request.remote_addr or ""
