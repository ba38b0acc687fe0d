"""What every handler of the hub needs: the store, the caller, the repository, threads, and pages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import unquote, urlencode, urlsplit

from quart import Response, current_app, g, render_template, request

from collidium.api.context import caller_scheme
from collidium.api.mounting import HUB_PATH, hub_path
from collidium_plugins.local_hub.accounts import Attempts, Caller, owner_of
from collidium_plugins.local_hub.failures import HubError, invalid, not_signed_in
from collidium_plugins.local_hub.openid.clients import Client
from collidium_plugins.local_hub.store import Store

_EXTENSION: Final = "collidium_local_hub"
#: Here applications give credentials of their own, where others give a token.
TOKEN_PATH: Final = "/oauth/token"  # noqa: S105 -- an address
#: Largest JSON document or form: 256 files with their beginnings, or some thousand paths.
DOCUMENT_BYTES: Final = 4 * 1024**2
#: Largest form of a sign-in.
FORM_BYTES: Final = 32 * 1024

_STYLE: Final = Path(__file__).with_name("static") / "pages.css"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub of this process, from when it begins to serve."""

    store: Store
    client: Client
    #: Trusted proxies in front of it.
    proxies: int
    attempts: Attempts = field(default_factory=Attempts)
    #: Threads; few, as writers wait for each other anyway.
    readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "hub-readers"))
    writers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "hub-writers"))


def begin(opened: Hub) -> None:
    """Answer with this hub from now on."""
    current_app.extensions[_EXTENSION] = opened


async def end() -> None:
    """Close the hub; requests have ended by now, and a commit whose client has left is still finished."""
    ended: Hub = current_app.extensions.pop(_EXTENSION)
    for threads in (ended.readers, ended.writers):
        await asyncio.to_thread(threads.shutdown)
    ended.store.close()


def hub() -> Hub:
    """The hub of this server."""
    opened: Hub = current_app.extensions[_EXTENSION]
    return opened


# -- work in threads ---------------------------------------------------------------------------------------


async def in_thread(
    threads: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """``function`` in a thread of the hub's own.

    Never one of asyncio's: work that takes long here would keep the whole platform waiting, and one that
    waits for the write lock would keep readers waiting, tokens among them.
    """
    call = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(threads, call)


async def reading(work: Callable[[sqlite3.Connection], T]) -> T:
    """``work`` with one consistent view of the metadata, off the event loop."""
    return await in_thread(hub().readers, _within, hub().store.database.reading, work)


async def writing(work: Callable[[sqlite3.Connection], T]) -> T:
    """``work`` as one transaction, off the event loop."""
    return await in_thread(hub().writers, _within, hub().store.database.writing, work)


def _within(transaction: Callable[[], Any], work: Callable[[sqlite3.Connection], T]) -> T:
    with transaction() as db:
        return work(db)


async def read_document(work: Callable[[sqlite3.Connection], object]) -> Response:
    """The result of ``work`` as JSON, encoded in the same thread: listings are long."""
    return _of_json(await reading(lambda db: json.dumps(work(db))))


async def read_page(work: Callable[[sqlite3.Connection], tuple[object, str | None]]) -> Response:
    """A page that ``work`` reads, with a link to the next one if there is a cursor."""

    def encoded(db: sqlite3.Connection) -> tuple[str, str | None]:
        document, cursor = work(db)
        return json.dumps(document), cursor

    text, cursor = await reading(encoded)
    response = _of_json(text)
    if cursor is not None:
        response.headers["Link"] = f'<{next_address(cursor)}>; rel="next"'
    return response


def json_response(document: object, status: int = 200) -> Response:
    """A response of JSON."""
    return _of_json(json.dumps(document), status)


def _of_json(text: str, status: int = 200) -> Response:
    return Response(text, status, content_type="application/json; charset=utf-8")


# -- the request -------------------------------------------------------------------------------------------


async def authenticate() -> None:
    """Identify the caller; an invalid token is refused everywhere."""
    header = request.headers.get("Authorization", "")
    g.hub_caller = None
    if header and request.path != f"{HUB_PATH}{TOKEN_PATH}":
        scheme, _, token = header.partition(" ")
        caller = await reading(lambda db: owner_of(db, token.strip()))
        if scheme.lower() != "bearer" or caller is None:
            raise not_signed_in()
        g.hub_caller = caller


def caller() -> Caller | None:
    """The caller, if authenticated."""
    account: Caller | None = g.hub_caller
    return account


def base_url() -> str:
    """The hub's own address, as the caller reached it."""
    return f"{_server_url()}{hub_path()}"


def pages_url() -> str:
    """The address of the pages at the same port, as the caller reached it; none at the hub's own port."""
    return _server_url() if hub_path() else ""


def _server_url() -> str:
    scheme = caller_scheme(hub().proxies)
    return f"{scheme}://{request.host}{request.root_path}"


def next_address(cursor: str) -> str:
    """This request's address with another cursor."""
    query = [(name, value) for name, value in request.args.items(multi=True) if name != "cursor"]
    path = "/".join(raw_segments())
    return f"{base_url()}/{path}?{urlencode([*query, ('cursor', cursor)])}"


def raw_segments() -> list[str]:
    """The path below the hub, split before anything is decoded: ``%2F`` is no separator."""
    raw = request.scope["raw_path"].decode("latin-1")
    path = raw if raw.startswith("/") else urlsplit(raw).path
    return path.removeprefix(request.root_path).removeprefix(HUB_PATH + "/").split("/")


def revision_and_path(verb: str, position: int) -> tuple[str, str]:
    """Parse the revision and the path, maybe empty, after ``verb``, the segment at ``position``."""
    segments = raw_segments()
    if len(segments) < position + 2 or segments[position] != verb:
        raise HubError(404, "No such address")
    try:
        revision, *path = (unquote(segment, errors="strict") for segment in segments[position + 1 :])
    except UnicodeDecodeError:
        raise invalid("The address is not UTF-8") from None
    return revision, "/".join(path)


async def sent_document() -> dict[str, Any]:
    """The JSON object of the body; raises HubError 400."""
    request.max_content_length = DOCUMENT_BYTES
    document = await request.get_json(force=True)
    if not isinstance(document, dict):
        raise invalid("The body is a JSON object")
    return document


async def sent_form() -> dict[str, str]:
    """The fields of the body's form, each there once; raises HubError 400."""
    if request.mimetype != "application/x-www-form-urlencoded":
        raise invalid("The body is a form: application/x-www-form-urlencoded")
    request.max_content_length = FORM_BYTES
    form = await request.form
    if any(len(values) > 1 for values in form.listvalues()):
        raise invalid("A field is there more than once")
    return dict(form.items())


def flag(value: object) -> bool:
    """Whether a query's or form's value means yes."""
    return str(value).lower() in {"1", "true", "yes"}


def limit(maximum: int, default: int) -> int:
    """The query's ``limit``, within bounds."""
    text = request.args.get("limit")
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text[:9]) < 1:
        raise invalid("The limit is a number from 1 on")
    return min(int(text[:9]), maximum)


def failure(error: HubError, headers: Mapping[str, str] | None = None) -> Response:
    """An error as the hub's clients read it."""
    response = json_response({"error": error.message, **error.body}, error.status)
    message = error.message.encode("ascii", "backslashreplace").decode()
    response.headers["X-Error-Message"] = "".join(c if c.isprintable() else "?" for c in message)[:500]
    if error.code is not None:
        response.headers["X-Error-Code"] = error.code
    response.headers.update(headers or {})
    return response


# -- pages -----------------------------------------------------------------------------------------------


async def page(template: str, status: int = 200, *, leads_to: str = "", **values: object) -> Response:
    """A page; ``leads_to`` is another origin at which the answer to its form may end.

    Browsers ask form-action about every address on the way, redirects too.
    """
    # By path alone: behind a proxy the browser's scheme is another than this server's.
    address = f"{request.root_path}{hub_path()}"
    text = await render_template(
        f"local_hub/{template}", hub=address, style=_style()[1], front=pages_url(), **values
    )
    response = Response(text, status, content_type="text/html; charset=utf-8")
    response.headers.update(
        {
            "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; "
            f"form-action 'self' {leads_to}".rstrip()
            + "; frame-ancestors 'none'; base-uri 'none'",
            "Cache-Control": "no-store",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
    )
    return response


async def style() -> Response:
    """``GET /oauth/pages.css``"""
    response = Response(_style()[0], content_type="text/css; charset=utf-8")
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _style() -> tuple[bytes, str]:
    """The style sheet, and what its address changes with."""
    content = _STYLE.read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
