"""Whether a server and this program understand each other."""

from __future__ import annotations

from collidium import __version__


def version_mismatch(server: str) -> str | None:
    """What to tell people about a server of that version; None when there is nothing to tell.

    Releases understand each other when their first two numbers are the same.
    """
    if _series(server) == _series(__version__):
        return None
    return f"the server runs collidium {server}, this program is {__version__}: update the older one"


def _series(version: str) -> list[str]:
    return version.split(".")[:2]
