"""What a handler works with: the platform, and from where its request comes."""

from __future__ import annotations

import ipaddress
from typing import cast

from quart import Quart, current_app, request

from collidium.api.readiness import Parts
from collidium.platform import Platform

_EXTENSION = "platform"
_PARTS = "readiness"


def give(app: Quart, opened: Platform) -> Parts:
    """Let the application serve that platform; returns what it asks whether it is ready."""
    app.extensions[_EXTENSION] = opened
    app.extensions[_PARTS] = parts = Parts(opened)
    return parts


def platform() -> Platform:
    """The platform that the current application serves."""
    return cast(Platform, current_app.extensions[_EXTENSION])


def parts() -> Parts:
    """What the current application asks whether it is ready."""
    return cast(Parts, current_app.extensions[_PARTS])


def caller_address(proxies: int) -> str:
    """Return the IP address of the caller, behind that many proxies of ours.

    Any caller can write ``X-Forwarded-For``, but for the entries that our proxies added: the last ones.
    """
    entry = _passed_on("X-Forwarded-For", proxies)
    return (entry and _address(entry)) or request.remote_addr or ""


def caller_scheme(proxies: int) -> str:
    """Return ``http`` or ``https``: how the caller reached the outermost of that many proxies of ours."""
    passed = _passed_on("X-Forwarded-Proto", proxies)
    return passed if passed in {"http", "https"} else request.scheme


def _passed_on(header: str, proxies: int) -> str | None:
    passed = ",".join(request.headers.getlist(header)).split(",") if proxies else []
    return passed[-proxies].strip() if len(passed) >= proxies > 0 else None


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
