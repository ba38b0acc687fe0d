"""Static files: style sheets, scripts and pictures under versioned URLs; and ``/guide``.

The guide has tutorials and reference, if the package ``collidium-docs`` is installed.
"""

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

_IMMUTABLE: Final = "public, max-age=31536000, immutable"
#: Prefix of versions in URLs; no file or folder begins with it.
_MARK: Final = "@"
#: Media types of files that are sent compressed.
_TEXT: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

GUIDE: Final = "/guide/"


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file."""

    content: bytes
    #: None if compression saves little.
    gzipped: bytes | None
    media_type: str
    digest: str


def asset_address(path: str) -> str:
    """Return the versioned URL of a file below ``static``. Raises KeyError.

    All files share one version, which comes first, so that relative imports of scripts keep the version.
    """
    if path not in _assets():
        raise KeyError(path)
    return f"/web/static/{_version()}/{path}"


async def show(path: str) -> Response:
    """``GET /web/static/<path>``, with or without a version in front"""
    current = path.startswith(f"{_version()}/")
    asset = _assets().get(path.partition("/")[2] if path.startswith(_MARK) else path)
    if asset is None:
        raise NotFound(f"there is no file {path!r}")
    packed = asset.gzipped is not None and request.accept_encodings.quality("gzip") > 0
    response = Response(asset.gzipped if packed else asset.content, content_type=asset.media_type)
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    # Other URLs may get another content later.
    response.headers["Cache-Control"] = _IMMUTABLE if current else "no-cache"
    response.set_etag(asset.digest)
    return await response.make_conditional(request)


@cache
def _assets() -> dict[str, Asset]:
    """All files below ``static`` by path."""
    root = files("collidium_plugins.webapps") / "static"
    return {path: _read(path, file) for path, file in _walk(root, "")}


@cache
def _version() -> str:
    """A hash of all files."""
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


ROUTES: Final[list[Route]] = [("GET", "/static/<path:path>", show)]


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


GUIDE_ROUTES: Final[list[Route]] = [("GET", "/", show_guide), ("GET", "/<path:name>", show_guide)]
