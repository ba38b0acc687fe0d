"""The page of a repository: its card and its files."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import quote

from quart import Response, request

from collidium.api import cards
from collidium.api.mounting import hub_path
from collidium_plugins.local_hub import repositories
from collidium_plugins.local_hub.documents import repo_document
from collidium_plugins.local_hub.failures import HubError
from collidium_plugins.local_hub.names import RESERVED, page_prefix
from collidium_plugins.local_hub.repositories import MAIN, Address, Repo, readable
from collidium_plugins.local_hub.trees import Entry, Trees
from collidium_plugins.local_hub.web.context import hub, page, reading

#: Files that are named, and bytes of the card that are shown; clients have all of them.
FILES: Final = 200
CARD_BYTES: Final = 64 * 1024

_CARD: Final = "README.md"


@dataclass(frozen=True, slots=True)
class File:
    """A file in a page."""

    path: str
    size: int
    #: Below the hub's address.
    address: str


async def show(place: Address) -> Response:
    """``GET [/{kind}]/{namespace}/{name}``"""
    if place.namespace in RESERVED:
        raise HubError(404, "This hub has no such address")
    try:
        repo, tags, commit, entries, card = await reading(lambda db: _read(db, place))
    except HubError:
        # To clients a hidden one is 401; a person has nowhere to sign in here.
        return await page("no-repository.html", 404, repo=f"{place.namespace}/{place.name}")
    return await page(
        "repository.html",
        repo=repo,
        tags=tags,
        commit=commit,
        files=[_file(repo, commit, path, entry) for path, entry in entries[:FILES]],
        more=len(entries) > FILES,
        card=await cards.rendered(await asyncio.to_thread(_text, card), _base(repo)) if card else "",
    )


def _read(
    db: sqlite3.Connection, place: Address
) -> tuple[Repo, list[str], str, list[tuple[str, Entry]], Entry | None]:
    repo = readable(db, place)
    commit = repositories.revision(db, repo, MAIN)
    trees = Trees(db, repo.id)
    entries = [("/".join(path), entry) for path, entry in islice(trees.files(commit.tree), FILES + 1)]
    card = trees.find(commit.tree, (_CARD,))
    tags: list[str] = repo_document(db, repo, commit)["tags"]
    return repo, tags, commit.oid, entries, None if card is None or card.is_directory else card


def _base(repo: Repo) -> str:
    return f"{request.root_path}{hub_path()}/{page_prefix(repo.kind)}{repo.full_name}"


def _file(repo: Repo, commit: str, path: str, entry: Entry) -> File:
    at = f"/{page_prefix(repo.kind)}{repo.full_name}/resolve/{commit}/{quote(path)}"
    return File(path, entry.size, at)


def _text(card: Entry) -> str:
    """The beginning of the card, as it was written."""
    with hub().store.blobs.path(card.sha256 or "").open("rb") as file:
        return file.read(CARD_BYTES).decode("utf-8", errors="replace")
