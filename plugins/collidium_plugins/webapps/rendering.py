"""Pages from templates, which escape whatever they are given, and redirects; what pages load, and the guide.

Styles, scripts and pictures are read once, named by their content, and kept by browsers.
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
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from quart import Response, render_template, request, send_from_directory

from collidium import __version__
from collidium.client.quantities import team_word, written
from collidium.errors import (
    CollidiumError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PaymentRequired,
    TooManyRequests,
    Unavailable,
)
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.sign_in import forms

#: Errors of the backend that are shown on the page of a form; others have a page of their own.
SHOWN_ON_FORMS: Final = (Conflict, Forbidden, InvalidInput, PaymentRequired, TooManyRequests, Unavailable)
#: The apps in the order of the navigation: address and name.
NAVIGATION: Final = (
    ("/events", "Events"),
    ("/datasets", "Datasets"),
    ("/simulate", "Simulate"),
    ("/leaderboard", "Leaderboards"),
    ("/models", "Models"),
    ("/docs", "API"),
)

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
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


async def render(template: str, **values: Any) -> Response:
    """A page from a template of ``templates/webapps``, with what every page needs."""
    viewer = context.viewer()
    csrf = viewer.csrf if viewer else ""
    text = await render_template(
        f"webapps/{template}",
        viewer=viewer,
        csrf_field=lambda: _csrf_field(csrf),
        asset=asset_address,
        api_base=context.web().api_base,
        hub=context.hub_url(),
        single_sign_on=context.web().single_sign_on,
        navigation=NAVIGATION,
        path=request.path,
        here=forms.this_page(),
        version=__version__,
        foot=context.web().settings,
        guide=GUIDE if guide_directory() else "",
        team_word=team_word,
        written=written,
        **values,
    )
    return Response(text, content_type="text/html; charset=utf-8")


async def part(response: Response) -> Response:
    """A part that is asked for again and again; nothing of it is sent while it stays the same."""
    response.headers["Cache-Control"] = "private, no-store"
    await response.add_etag()
    return await response.make_conditional(request)


def _csrf_field(secret: str) -> Markup:
    return Markup('<input type="hidden" name="csrf_token" value="{}">').format(secret)


def see_other(address: str) -> Response:
    """On to another page, which is asked for by GET whatever came before (RFC 9110, section 15.4.4)."""
    return Response("", status=303, headers={"Location": address, "Cache-Control": "no-store"})


def refused(page: Response, error: CollidiumError) -> Response:
    """The page of a form with the status of the backend's error, and its Retry-After."""
    page.status_code = error.status
    if "Retry-After" in error.headers:
        page.headers["Retry-After"] = error.headers["Retry-After"]
    return page


def retry_after(error: CollidiumError | None) -> str:
    """How long to wait, for people; empty without a Retry-After."""
    text = error.headers.get("Retry-After", "") if error else ""
    if not (text.isascii() and text.isdecimal()):
        return ""
    seconds = int(text[:9])
    if seconds < 2 * _MINUTE:
        return f"{seconds} seconds"
    return f"{-(-seconds // _MINUTE)} minutes" if seconds < 2 * _HOUR else f"{-(-seconds // _HOUR)} hours"


def with_query(path: str, **query: object) -> str:
    """The path with a query; what is empty or None is left out."""
    text = urlencode({name: value for name, value in query.items() if value not in ("", None)})
    return f"{path}?{text}" if text else path


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    #: None where it would be hardly smaller.
    gzipped: bytes | None
    media_type: str
    digest: str


def asset_address(path: str) -> str:
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
