"""Options that every container of ours is made with, the same for docker and podman."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

#: Engines hand these on from their own surroundings; an address in them may hold a password.
_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def confined(*, rootless: bool) -> list[str]:
    """No network, no rights, never root outside; files that it makes belong to this account."""
    # An engine that runs as this account calls this account root.
    user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    return [
        # Without an init nobody heeds the signal to stop.
        "--init",
        "--pull=never",
        "--network=none",
        f"--user={user}",
        "--cap-drop=all",
        # Folders of this account bear no label that SELinux would let a container use.
        "--security-opt=no-new-privileges",
        "--security-opt=label=disable",
        *(f"--env={name}=" for proxy in _PROXIES for name in (proxy, proxy.upper())),
    ]


def bind(source: Path, target: str) -> str:
    """A folder of this machine in a container. Raises ValueError for a path that cannot be told engines."""
    if set(str(source)) & set(',"\n'):
        raise ValueError("containers can mount no path with a comma or a quote")
    return f"--mount=type=bind,source={source},target={target}"


def options(words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Each word with its option: ``--option=word``."""
    return (f"{option}={word}" for option, of in words.items() for word in of)
