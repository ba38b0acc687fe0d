"""Styles, scripts and pictures: read once, named by their content, kept by browsers; and the guide."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from quart import Response, request, send_from_directory

from collidium.errors import NotFound
from collidium_plugins.webapps.context import Route

GUIDE: Final = "/guide/"
_FOREVER: Final = "public, max-age=31536000, immutable"
#: What a version begins with, and no file or folder does.
_MARK: Final = "@"
#: What is sent compressed, by its ending.
_TEXT: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    #: None where it would be hardly smaller.
    gzipped: bytes | None
    media_type: str
    digest: str


def address(path: str) -> str:
    """Where a file below ``static`` is had; with other contents all have other addresses. Raises KeyError.

    The version stands in front, so that a script that imports its neighbours gets them of the same version.
    """
    if path not in _assets():
        raise KeyError(path)
    return f"/web/static/{_version()}/{path}"


async def show(path: str) -> Response:
    """``GET /web/static/<path>``, with a version in front or without."""
    current = path.startswith(f"{_version()}/")
    asset = _assets().get(path.partition("/")[2] if path.startswith(_MARK) else path)
    if asset is None:
        raise NotFound(f"there is no file {path!r}")
    packed = asset.gzipped is not None and request.accept_encodings.quality("gzip") > 0
    response = Response(asset.gzipped if packed else asset.content, content_type=asset.media_type)
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    # Any other address may show something else tomorrow.
    response.headers["Cache-Control"] = _FOREVER if current else "no-cache"
    response.set_etag(asset.digest)
    return await response.make_conditional(request)


@cache
def _assets() -> dict[str, Asset]:
    """All files below ``static`` by their paths."""
    root = files("collidium_plugins.webapps") / "static"
    return {path: _read(path, file) for path, file in _walk(root, "")}


@cache
def _version() -> str:
    """A version that these files share with no other release."""
    digests = "".join(f"{path} {asset.digest}\n" for path, asset in sorted(_assets().items()))
    return _MARK + hashlib.sha256(digests.encode()).hexdigest()[:16]


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found = []
    for child in folder.iterdir():
        path = f"{prefix}{child.name}"
        found += _walk(child, f"{path}/") if child.is_dir() else [(path, child)]
    return found


def _read(path: str, file: Traversable) -> Asset:
    content = file.read_bytes()
    suffix = path[path.rfind(".") :]
    text = _TEXT.get(suffix)
    media_type = (
        f"{text}; charset=utf-8" if text else mimetypes.guess_type(path)[0] or "application/octet-stream"
    )
    gzipped = gzip.compress(content, mtime=0) if text else None
    return Asset(content, gzipped, media_type, hashlib.sha256(content).hexdigest()[:16])


# -- the guide: tutorials and reference, where the package ``collidium-docs`` is installed -------------------


@cache
def guide_directory() -> Path | None:
    """Where the site lies."""
    found = find_spec("collidium_docs")
    return Path(found.origin).parent / "html" if found and found.origin else None


async def show_guide(name: str = "index.html") -> Response:
    """``GET /guide/{name}``"""
    site = guide_directory()
    if site is None:
        raise NotFound("The guide is not installed here: pip install collidium-docs.")
    return await send_from_directory(site, name)


ROUTES: Final[list[Route]] = [("GET", "/static/<path:path>", show)]
GUIDE_ROUTES: Final[list[Route]] = [("GET", "/", show_guide), ("GET", "/<path:name>", show_guide)]
