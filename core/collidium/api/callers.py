"""From where a request comes."""

from __future__ import annotations

import ipaddress

from quart import request


def caller_address(proxies: int) -> str:
    """Return the IP address of the caller, behind that many proxies of ours.

    ``X-Forwarded-For`` is anybody's to write, but for the entries that our proxies added: the last ones.
    """
    passed = ",".join(request.headers.getlist("X-Forwarded-For")).split(",") if proxies else []
    found = _address(passed[-proxies].strip()) if len(passed) >= proxies > 0 else ""
    return found or request.remote_addr or ""


def _address(entry: str) -> str:
    """The IP address of an entry, which may have brackets and a port; empty where there is none."""
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    try:
        return str(ipaddress.ip_address(entry))
    except ValueError:
        return ""
