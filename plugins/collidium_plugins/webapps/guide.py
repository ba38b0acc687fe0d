"""``/guide``: tutorials and reference, if the package ``collidium-docs`` is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from quart import Response, send_from_directory

from collidium.errors import NotFound
from collidium_plugins.webapps.context import Route

GUIDE: Final = "/guide/"


@cache
def guide_directory() -> Path | None:
    """The directory of the site; None if it is not installed."""
    found = find_spec("collidium_docs")
    return Path(found.origin).parent / "html" if found and found.origin else None


async def show_guide(name: str = "index.html") -> Response:
    """``GET /guide/{name}``"""
    site = guide_directory()
    if site is None:
        raise NotFound("The guide is not installed here: pip install collidium-docs.")
    return await send_from_directory(site, name)


ROUTES: Final[list[Route]] = [("GET", "/", show_guide), ("GET", "/<path:name>", show_guide)]
