"""From where a request comes."""

from __future__ import annotations

from quart import request

from collidium_plugins.webapps import context


def caller() -> str:
    """The address of whoever calls.

    What ``X-Forwarded-For`` says is anybody's to write, but for the entries that proxies of ours added: the
    last ones, as many as the settings say.
    """
    proxies = context.web().settings.trusted_proxies
    passed = ",".join(request.headers.getlist("X-Forwarded-For")).split(",") if proxies else []
    if len(passed) >= proxies > 0:
        return passed[-proxies].strip()
    return request.remote_addr or ""
