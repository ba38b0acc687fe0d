"""Shared by the hub's handlers: store, threads, the caller, reading of requests, rendering of pages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import unquote, urlencode, urlsplit
from weakref import WeakValueDictionary

from quart import Response, current_app, g, render_template, request

from collidium.api.context import caller_scheme
from collidium.api.mounting import HUB_PATH, hub_path
from collidium_plugins.local_hub.accounts import Attempts, HubCaller, owner_of
from collidium_plugins.local_hub.failures import HubFailure, invalid, not_signed_in
from collidium_plugins.local_hub.openid.requests import RegisteredClient
from collidium_plugins.local_hub.store import Store

_EXTENSION: Final = "collidium_local_hub"
#: Requests here have an application's credentials in the Authorization header instead of a token.
TOKEN_PATH: Final = "/oauth/token"  # noqa: S105 -- an address
#: Requests below have a permit to upload by Xet in the Authorization header instead of a token.
XET_PATH: Final = "/api/xet/"
#: Maximum size of a JSON document or form: 256 files with their first bytes, or some thousand paths.
DOCUMENT_BYTES: Final = 4 * 1024**2
#: Maximum size of a sign-in form.
FORM_BYTES: Final = 32 * 1024

P = ParamSpec("P")
T = TypeVar("T")

_STYLE: Final = Path(__file__).with_name("static") / "pages.css"


@dataclass(frozen=True, slots=True)
class ServedHub:
    """The hub of this process, while it serves."""

    store: Store
    client: RegisteredClient
    #: Trusted proxies in front of it.
    proxies: int
    attempts: Attempts = field(default_factory=Attempts)
    #: Few threads suffice: writers wait for each other anyway.
    readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "hub-readers"))
    writers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "hub-writers"))
    #: Commits have up to 2 GB of lines to read, so they have threads of their own.
    committers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "hub-commits"))
    #: Held by the commit of each account, so that those of one account leave threads to others.
    committing: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    unpackers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "hub-xorbs"))
    unpacking: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    #: Uploads by Xet have up to 64 GiB to assemble, so that others could not be unpacked meanwhile.
    assemblers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "hub-shards"))
    assembling: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)


def begin(opened: ServedHub) -> None:
    """Serve requests with this hub."""
    current_app.extensions[_EXTENSION] = opened


async def end() -> None:
    """Close the hub after all requests. Commits of disconnected clients are still finished."""
    ended: ServedHub = current_app.extensions.pop(_EXTENSION)
    pools = ended.readers, ended.writers, ended.committers, ended.unpackers, ended.assemblers
    for threads in pools:
        await asyncio.to_thread(threads.shutdown)
    ended.store.close()


def hub() -> ServedHub:
    """The hub of this server."""
    opened: ServedHub = current_app.extensions[_EXTENSION]
    return opened


# -- work in threads ---------------------------------------------------------------------------------------


async def in_thread(
    threads: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run ``function`` in one of the hub's own threads.

    In asyncio's default pool, slow calls would block the rest of the platform. Writers have a pool of their
    own, so that waiting for the write lock does not block readers, which check tokens too.
    """
    call = partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(threads, call)


async def in_turn(
    turns: WeakValueDictionary[int, asyncio.Lock],
    account: int,
    threads: ThreadPoolExecutor,
    function: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run ``function`` in a thread, after those of the same account.

    The work of a client that has disconnected goes on, and so does its turn.
    """
    turn = turns.setdefault(account, asyncio.Lock())
    await turn.acquire()
    work = asyncio.ensure_future(in_thread(threads, function, *args, **kwargs))
    work.add_done_callback(lambda done: _end_turn(turn, done))
    return await asyncio.shield(work)


def _end_turn(turn: asyncio.Lock, done: asyncio.Future[Any]) -> None:
    turn.release()
    if not done.cancelled():
        done.exception()  # retrieved, as the client may have disconnected


async def reading(work: Callable[[sqlite3.Connection], T]) -> T:
    """Run ``work`` in a read transaction, in a thread."""
    return await in_thread(hub().readers, _within, hub().store.database.reading, work)


async def writing(work: Callable[[sqlite3.Connection], T]) -> T:
    """Run ``work`` in a write transaction, in a thread."""
    transaction = partial(hub().store.database.writing, monotonic())
    return await in_thread(hub().writers, _within, transaction, work)


def _within(transaction: Callable[[], Any], work: Callable[[sqlite3.Connection], T]) -> T:
    with transaction() as db:
        return work(db)


async def read_document(work: Callable[[sqlite3.Connection], object]) -> Response:
    """Respond with the result of ``work`` as JSON, encoded in the same thread as listings are long."""
    return _of_json(await reading(lambda db: json.dumps(work(db))))


async def read_page(work: Callable[[sqlite3.Connection], tuple[object, str | None]]) -> Response:
    """Respond with the page that ``work`` returns, and a link to the next one if it returns a cursor."""

    def encoded(db: sqlite3.Connection) -> tuple[str, str | None]:
        document, cursor = work(db)
        return json.dumps(document), cursor

    text, cursor = await reading(encoded)
    response = _of_json(text)
    if cursor is not None:
        response.headers["Link"] = f'<{_next_url(cursor)}>; rel="next"'
    return response


def json_response(document: object, status: int = 200) -> Response:
    """A response of JSON."""
    return _of_json(json.dumps(document), status)


def _of_json(text: str, status: int = 200) -> Response:
    return Response(text, status, content_type="application/json; charset=utf-8")


# -- the request -------------------------------------------------------------------------------------------


async def authenticate() -> None:
    """Identify the caller. Rejects an invalid token on every route."""
    header = request.headers.get("Authorization", "")
    g.hub_caller = None
    path = request.path.removeprefix(HUB_PATH)
    if header and path != TOKEN_PATH and not path.startswith(XET_PATH):
        scheme, _, token = header.partition(" ")
        caller = await reading(lambda db: owner_of(db, token.strip()))
        if scheme.lower() != "bearer" or caller is None:
            raise not_signed_in()
        g.hub_caller = caller


def caller() -> HubCaller | None:
    """The caller, if authenticated."""
    account: HubCaller | None = g.hub_caller
    return account


def base_url() -> str:
    """The hub's URL, as the caller reached it."""
    return f"{_server_url()}{hub_path()}"


def pages_url() -> str:
    """The URL of the pages at the same port, as the caller reached it; empty at the hub's own port."""
    return _server_url() if hub_path() else ""


def own_origin() -> str:
    """The origin of the hub's pages, as the caller reached them."""
    return f"{caller_scheme(hub().proxies)}://{request.host}"


def _server_url() -> str:
    return f"{own_origin()}{request.root_path}"


def _next_url(cursor: str) -> str:
    """This request's URL with another cursor."""
    query = [(name, value) for name, value in request.args.items(multi=True) if name != "cursor"]
    path = "/".join(raw_segments())
    return f"{base_url()}/{path}?{urlencode([*query, ('cursor', cursor)])}"


def raw_segments() -> list[str]:
    """The path below the hub, split before it is decoded, so that ``%2F`` is no separator."""
    raw = request.scope["raw_path"].decode("latin-1")
    path = raw if raw.startswith("/") else urlsplit(raw).path
    return path.removeprefix(request.root_path).removeprefix(HUB_PATH + "/").split("/")


def revision_and_path(verb: str, position: int) -> tuple[str, str]:
    """Parse the revision and the path, which may be empty, after ``verb``, the segment at ``position``."""
    segments = raw_segments()
    if len(segments) < position + 2 or segments[position] != verb:
        raise HubFailure(404, "This hub has no such address")
    try:
        revision, *path = (unquote(segment, errors="strict") for segment in segments[position + 1 :])
    except UnicodeDecodeError:
        raise invalid("The URL is not UTF-8") from None
    return revision, "/".join(path)


async def sent_document() -> dict[str, Any]:
    """The JSON object of the body; raises HubError 400."""
    request.max_content_length = DOCUMENT_BYTES
    document = await request.get_json(force=True)
    if not isinstance(document, dict):
        raise invalid("The body must be a JSON object")
    return document


async def sent_form() -> dict[str, str]:
    """The fields of the body's form, none of them repeated; raises HubError 400."""
    if request.mimetype != "application/x-www-form-urlencoded":
        raise invalid("The body must be a form: application/x-www-form-urlencoded")
    request.max_content_length = FORM_BYTES
    form = await request.form
    if any(len(values) > 1 for values in form.listvalues()):
        raise invalid("A field is given more than once")
    return dict(form.items())


def flag(value: object) -> bool:
    """Whether a value of a query or form is true."""
    return str(value).lower() in {"1", "true", "yes"}


def limit(maximum: int, default: int) -> int:
    """The query's ``limit``, within bounds."""
    text = request.args.get("limit")
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text[:9]) < 1:
        raise invalid("limit must be a positive number")
    return min(int(text[:9]), maximum)


def failure(error: HubFailure) -> Response:
    """Render an error in the format of the hub's clients."""
    response = json_response({"error": error.message, **error.body}, error.status)
    message = error.message.encode("ascii", "backslashreplace").decode()
    response.headers["X-Error-Message"] = "".join(c if c.isprintable() else "?" for c in message)[:500]
    if error.code is not None:
        response.headers["X-Error-Code"] = error.code
    response.headers.update(error.headers)
    return response


async def page(template: str, status: int = 200, *, leads_to: str = "", **values: object) -> Response:
    """Render a page; ``leads_to`` is another origin to which its form may redirect.

    Browsers apply ``form-action`` to redirects as well.
    """
    # Without scheme and host: behind a proxy, the browser's differ from this server's.
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
            # With no-referrer, browsers would send `Origin: null` with the forms of these pages.
            "Referrer-Policy": "same-origin",
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
    """The style sheet, and a version for its URL."""
    content = _STYLE.read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
