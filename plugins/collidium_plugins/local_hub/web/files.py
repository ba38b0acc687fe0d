"""Listing and download of files, and the page of a repository."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from quart import Response, request

from collidium.api.answers import OpenedFile, requested_range
from collidium.api.mounting import hub_path
from collidium.hub import cards
from collidium_plugins.local_hub import repositories
from collidium_plugins.local_hub.documents import entry_document, lfs_file_document, repo_document
from collidium_plugins.local_hub.failures import HubFailure, entry_not_found, invalid
from collidium_plugins.local_hub.names import RESERVED, is_path, page_prefix
from collidium_plugins.local_hub.repositories import (
    MAIN,
    Commit,
    Repo,
    RepositoryTarget,
    last_changes,
    readable,
)
from collidium_plugins.local_hub.trees import Entry, Trees
from collidium_plugins.local_hub.web.context import (
    DOCUMENT_BYTES,
    failure,
    flag,
    hub,
    limit,
    page,
    read_document,
    read_page,
    reading,
    revision_and_path,
)

PAGE: Final = 1000
#: Pages with the last change of each file are shorter, as finding it reads the history.
EXPANDED_PAGE: Final = 50
PATHS: Final = 1000
#: Bytes per read.
BLOCK: Final = 512 * 1024

#: Maximum numbers of files and bytes of the card on the page of a repository.
FILES: Final = 200
CARD_BYTES: Final = 64 * 1024

_CARD: Final = "README.md"


async def tree(target: RepositoryTarget) -> Response:
    """``GET …/tree/{revision}[/{path}]?recursive=&expand=&limit=&cursor=``"""
    revision, path = revision_and_path("tree", 4)
    path = path.strip("/")
    expand, recursive = flag(request.args.get("expand")), flag(request.args.get("recursive"))
    number = limit(PAGE, EXPANDED_PAGE if expand else PAGE)
    number = min(number, EXPANDED_PAGE) if expand else number
    after = tuple(filter(None, request.args.get("cursor", "").split("/")))

    def page(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], str | None]:
        repo = readable(db, target)
        commit = repositories.revision(db, repo, revision)
        trees = Trees(db, repo.id)
        root = tuple(path.split("/")) if path else ()
        folder = trees.find(commit.tree, root)
        if folder is None or not folder.is_directory:
            raise entry_not_found(path)
        found = list(islice(trees.walk(folder.oid, root, after=after, recursive=recursive), number + 1))
        shown = found[:number]
        last = last_changes(db, repo.id, commit, [path for path, _ in shown]) if expand else {}
        cursor = "/".join(shown[-1][0]) if len(found) > number else None
        return [entry_document(path, entry, last.get(path)) for path, entry in shown], cursor

    return await read_page(page)


async def lfs_files(target: RepositoryTarget) -> Response:
    """``GET …/lfs-files``: LFS contents of all commits"""
    cursor = request.args.get("cursor", "0")
    if not cursor.isascii() or not cursor.isdigit():
        raise invalid("The cursor is not one of this list")
    start = int(cursor[:9])

    def page(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], str | None]:
        repo = readable(db, target)
        found = list(islice(repositories.lfs_files(db, repo.id), start, start + PAGE + 1))
        next_cursor = str(start + PAGE) if len(found) > PAGE else None
        return [lfs_file_document(*file) for file in found[:PAGE]], next_cursor

    return await read_page(page)


async def paths_info(target: RepositoryTarget) -> Response:
    """``POST …/paths-info/{revision}``: those of the given paths that exist"""
    revision, _ = revision_and_path("paths-info", 4)
    paths, expand = await _sent_paths()

    def describe(db: sqlite3.Connection) -> list[dict[str, Any]]:
        repo = readable(db, target)
        commit = repositories.revision(db, repo, revision)
        trees = Trees(db, repo.id)
        split = [tuple(path.split("/")) for path in paths]
        found = {path: entry for path in split if (entry := trees.find(commit.tree, path)) is not None}
        last = last_changes(db, repo.id, commit, list(found)) if expand else {}
        return [entry_document(path, entry, last.get(path)) for path, entry in found.items()]

    return await read_document(describe)


async def _sent_paths() -> tuple[list[str], bool]:
    request.max_content_length = DOCUMENT_BYTES
    if request.is_json:
        document = await request.get_json()
        paths = document.get("paths", []) if isinstance(document, dict) else None
        expand = flag(document.get("expand")) if isinstance(document, dict) else False
    else:
        form = await request.form
        paths, expand = form.getlist("paths"), flag(form.get("expand"))
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise invalid("paths must be a list of strings")
    if len(paths) > PATHS:
        raise HubFailure(413, f"paths must be a list of at most {PATHS}")
    return [path for path in (path.strip("/") for path in paths) if is_path(path)], expand


# -- downloads ---------------------------------------------------------------------------------------------


async def resolve(target: RepositoryTarget) -> Response:
    """``GET [/{kind}]/{namespace}/{name}/resolve/{revision}/{path}``"""
    revision, path = revision_and_path("resolve", 2 if target.kind == "models" else 3)

    def find(db: sqlite3.Connection) -> tuple[Commit, Entry]:
        repo = readable(db, target)
        commit = repositories.revision(db, repo, revision)
        entry = Trees(db, repo.id).find(commit.tree, tuple(path.split("/")))
        if entry is None or entry.is_directory:
            raise entry_not_found(path)
        return commit, entry

    commit, entry = await reading(find)
    headers = _headers(commit, entry)
    requested = requested_range(headers["ETag"], entry.size)
    if requested is not None and not requested:
        headers = {"Content-Range": f"bytes */{entry.size}", "Accept-Ranges": "bytes"}
        return failure(HubFailure(416, f"The file has {entry.size} bytes", headers=headers))
    return await _download(hub().store.blobs.path(entry.sha256 or ""), entry.size, requested, headers)


def _headers(commit: Commit, entry: Entry) -> dict[str, str]:
    headers = {
        "X-Repo-Commit": commit.oid,
        "ETag": f'"{entry.etag}"',
        "Accept-Ranges": "bytes",
        # Browsers must not render uploaded content as a page of this server.
        "Content-Type": "application/octet-stream",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    if entry.lfs:
        headers |= {"X-Linked-Size": str(entry.size), "X-Linked-Etag": f'"{entry.etag}"'}
    return headers


async def _download(path: Path, size: int, requested: range | None, headers: dict[str, str]) -> Response:
    part = requested or range(size)
    body = OpenedFile(path, buffer_size=BLOCK)
    if requested:
        await body.make_conditional(part.start, part.stop)
    response = Response(b"" if request.method == "HEAD" else body, 206 if requested else 200)
    response.headers.update(headers)
    response.headers["Content-Length"] = str(len(part))
    if requested:
        response.headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    return response


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file on the page of a repository."""

    path: str
    size: int
    #: Below the hub's address.
    address: str


async def show_page(target: RepositoryTarget) -> Response:
    """``GET [/{kind}]/{namespace}/{name}``"""
    if target.namespace in RESERVED:
        raise HubFailure(404, "This hub has no such address")
    try:
        repo, tags, commit, entries, card = await reading(lambda db: _read_page(db, target))
    except HubFailure:
        # Clients get a 401 for a hidden repository; browsers cannot sign in here.
        return await page("no-repository.html", 404, repo=f"{target.namespace}/{target.name}")
    return await page(
        "repository.html",
        repo=repo,
        tags=tags,
        commit=commit,
        files=[_file(repo, commit, path, entry) for path, entry in entries[:FILES]],
        more=len(entries) > FILES,
        card=await cards.rendered(await asyncio.to_thread(_card_text, card), _page_path(repo))
        if card
        else "",
    )


def _read_page(
    db: sqlite3.Connection, target: RepositoryTarget
) -> tuple[Repo, list[str], str, list[tuple[str, Entry]], Entry | None]:
    repo = readable(db, target)
    commit = repositories.revision(db, repo, MAIN)
    trees = Trees(db, repo.id)
    entries = [("/".join(path), entry) for path, entry in islice(trees.files(commit.tree), FILES + 1)]
    card = trees.find(commit.tree, (_CARD,))
    tags: list[str] = repo_document(db, repo, commit)["tags"]
    return repo, tags, commit.oid, entries, None if card is None or card.is_directory else card


def _page_path(repo: Repo) -> str:
    return f"{request.root_path}{hub_path()}/{page_prefix(repo.kind)}{repo.full_name}"


def _file(repo: Repo, commit: str, path: str, entry: Entry) -> ShownFile:
    address = f"/{page_prefix(repo.kind)}{repo.full_name}/resolve/{commit}/{quote(path)}"
    return ShownFile(path, entry.size, address)


def _card_text(card: Entry) -> str:
    with hub().store.blobs.path(card.sha256 or "").open("rb") as file:
        return file.read(CARD_BYTES).decode("utf-8", errors="replace")
