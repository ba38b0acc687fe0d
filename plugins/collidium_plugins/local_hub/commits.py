"""Reads commits, sent as a line of JSON for the header and one per change, and applies them.

A commit to the main branch that changes README.md also updates the repository's card.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from collidium_plugins.local_hub.failures import HubFailure, invalid
from collidium_plugins.local_hub.names import SHA256, check_path
from collidium_plugins.local_hub.repositories import (
    MAIN,
    Commit,
    Repo,
    add_commit,
    branch_head,
    owns_object,
    touch,
)
from collidium_plugins.local_hub.store import Blobs
from collidium_plugins.local_hub.trees import Entry, Path, TreeDraft, Trees, large_file, regular_file

if TYPE_CHECKING:  # imported with the first card, as it slows the start of a server by 2%
    import yaml

#: Maximum length of front matter and of a tag, and number of tags.
CARD_BYTES: Final = 64 * 1024
TAGS: Final = 100
TAG_LENGTH: Final = 100

#: Files of this size and more are sent by LFS, smaller ones inside the commit in base64.
REGULAR_BYTES: Final = 10 * 1024**2
LINE_BYTES: Final = REGULAR_BYTES * 4 // 3 + 64 * 1024
CHANGES: Final = 50_000
TITLE_LENGTH: Final = 1000
DESCRIPTION_LENGTH: Final = 64 * 1024

#: Fields of a card that become tags, and the prefix of each.
_TAG_FIELDS: Final = {
    "tags": "",
    "library_name": "",
    "pipeline_tag": "",
    "license": "license:",
    "datasets": "dataset:",
    "language": "",
}


class BadCard(ValueError):
    """The front matter cannot be read."""


@cache
def _loader() -> type[yaml.SafeLoader]:
    """A YAML loader that rejects aliases, with which a few lines can exhaust the memory."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise BadCard("aliases are not supported")
            return super().compose_node(parent, index)

    return Loader


def read_card(readme: str) -> dict[str, Any]:
    """Return the front matter as plain JSON; empty if there is none. Raises BadCard."""
    lines = readme.lstrip("\ufeff").replace("\r\n", "\n")
    if not lines.startswith("---\n"):
        return {}
    text, end, _ = (lines[3:] + "\n").partition("\n---\n")
    if not end:
        return {}
    import yaml

    if len(text) > CARD_BYTES:
        raise BadCard(f"it is longer than {CARD_BYTES:,} bytes")
    try:
        card = yaml.load(text, Loader=_loader())  # noqa: S506 -- a SafeLoader
        plain = json.loads(json.dumps(card, default=str, allow_nan=False))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise BadCard(str(error) or "it is nested too deeply") from None
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise BadCard("it is not a mapping")
    return plain


def tags_of(card: dict[str, Any]) -> list[str]:
    """Return the tags that lists of repositories can be filtered by."""
    tags = [f"{prefix}{word}" for field, prefix in _TAG_FIELDS.items() for word in _words(card.get(field))]
    return list(dict.fromkeys(tags))[:TAGS]


def _words(value: Any) -> Iterable[str]:
    values = value if isinstance(value, list) else [value]
    return [
        word
        for word in values
        if isinstance(word, str) and 0 < len(word) <= TAG_LENGTH and word.isprintable()
    ]


@dataclass(frozen=True, slots=True)
class Header:
    title: str
    description: str
    #: The required head of the branch: a commit id or the beginning of one.
    parent: str | None


@dataclass(frozen=True, slots=True)
class Put:
    """Add or replace a small file."""

    path: Path
    entry: Entry


@dataclass(frozen=True, slots=True)
class PutLarge:
    """Add or replace a file whose content was uploaded by LFS."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a file or folder."""

    path: Path
    folder: bool


Change = Put | PutLarge | Delete


def read_commit(lines: BinaryIO) -> tuple[Header, list[Change]]:
    """Parse and validate a commit without storing its contents; raises HubError."""
    documents = _documents(lines)
    key, value = next(documents, ("nothing", {}))
    if key != "header":
        raise invalid(f"A commit must begin with its header, not with {key!r}")
    header = Header(
        _text(value.get("summary"), "summary", TITLE_LENGTH) or "commit",
        _text(value.get("description", ""), "description", DESCRIPTION_LENGTH),
        _text(value["parentCommit"], "parentCommit", 40) if value.get("parentCommit") else None,
    )
    changes = []
    for key, value in documents:
        changes.append(_change(key, value))
        if len(changes) > CHANGES:
            raise HubFailure(413, f"A commit can have at most {CHANGES:,} changes")
    return header, changes


def store_contents(lines: BinaryIO, blobs: Blobs) -> None:
    """Store the contents inside a commit that :func:`read_commit` has validated."""
    for key, value in _documents(lines):
        if key == "file":
            blobs.write(_content(value))


def contents(changes: Iterable[Change]) -> set[str]:
    """Return the SHA-256 of the contents inside a commit."""
    return {change.entry.sha256 or "" for change in changes if isinstance(change, Put)}


def check_commit(
    db: sqlite3.Connection, repo: Repo, branch: str, header: Header, changes: list[Change]
) -> tuple[Commit, TreeDraft]:
    """Return the head of the branch and a draft with the changes, without storing anything.

    Raises HubError, with status 412 if the branch is not at the header's parent.
    """
    head = branch_head(db, repo, branch)
    if header.parent is not None and (len(header.parent) < 7 or not head.oid.startswith(header.parent)):
        raise HubFailure(412, f"The branch {branch!r} is at {head.oid}: fetch it and commit again")
    draft = TreeDraft(Trees(db, repo.id), head.tree)
    for change in changes:
        if isinstance(change, Delete):
            draft.delete(change.path, folder=change.folder)
        elif isinstance(change, PutLarge):
            draft.put(change.path, _large(db, repo, change))
        else:
            draft.put(change.path, change.entry)
    return head, draft


def apply_commit(
    db: sqlite3.Connection,
    blobs: Blobs,
    repo: Repo,
    branch: str,
    author: str,
    header: Header,
    changes: list[Change],
) -> Commit:
    """Commit the changes to a branch, and return its new head.

    Raises as :func:`check_commit`. Makes no commit if the tree stays the same.
    """
    head, draft = check_commit(db, repo, branch, header, changes)
    for change in changes:
        if isinstance(change, Put):
            reference_object(db, blobs, repo.id, change.entry.sha256 or "", change.entry.size)
    tree = draft.save()
    if tree == head.tree:
        return head
    commit = add_commit(
        db, repo.id, tree, parent=head.oid, title=header.title, description=header.description, author=author
    )
    db.execute(
        "UPDATE refs SET commit_oid = ? WHERE repo_id = ? AND kind = 'branch' AND name = ?",
        (commit.oid, repo.id, branch),
    )
    touch(db, repo)
    readme, trees = ("README.md",), Trees(db, repo.id)
    if branch == MAIN and trees.find(tree, readme) != trees.find(head.tree, readme):
        _update_card(db, blobs, repo, trees.find(tree, readme))
    return commit


# -- reading -----------------------------------------------------------------------------------------------


def _documents(lines: BinaryIO) -> Iterator[tuple[str, dict[str, Any]]]:
    while line := lines.readline(LINE_BYTES + 1):
        if len(line) > LINE_BYTES:
            raise HubFailure(413, f"Files of more than {REGULAR_BYTES:,} bytes must be uploaded by LFS")
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            raise invalid("A line of the commit is not JSON") from None
        if not isinstance(document, dict) or not isinstance(document.get("value"), dict):
            raise invalid('A line of the commit is not {"key": …, "value": {…}}')
        yield str(document.get("key")), document["value"]


def _change(key: str, value: dict[str, Any]) -> Change:
    sent = value.get("path")
    if key == "deletedFolder" and isinstance(sent, str):
        sent = sent.removesuffix("/")  # with which clients mark a folder
    path = check_path(sent)
    if key == "file":
        content = _content(value)
        return Put(path, regular_file(content, hashlib.sha256(content).hexdigest()))
    if key == "lfsFile":
        sha256 = value.get("oid")
        if (
            value.get("algo", "sha256") != "sha256"
            or not isinstance(sha256, str)
            or not SHA256.fullmatch(sha256)
        ):
            raise invalid("The oid of an LFS file must be its SHA-256")
        return PutLarge(path, sha256)
    if key in {"deletedFile", "deletedFolder"}:
        return Delete(path, folder=key == "deletedFolder")
    raise invalid(f"Unknown change {key[:100]!r}")


def _content(value: dict[str, Any]) -> bytes:
    content = value.get("content")
    if not isinstance(content, str) or value.get("encoding", "base64") != "base64":
        raise invalid("The content of a file must be a string in base64")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("The content of a file is not base64") from None


def _text(value: object, name: str, length: int) -> str:
    if not isinstance(value, str) or len(value) > length:
        raise invalid(f"{name} must be a string of at most {length:,} characters")
    return value.encode(errors="replace").decode().strip()


# -- applying ----------------------------------------------------------------------------------------------


def _large(db: sqlite3.Connection, repo: Repo, change: PutLarge) -> Entry:
    size = owns_object(db, repo, change.sha256)
    if size is None:
        raise invalid(f"The content {change.sha256} was not uploaded to this repository")
    return large_file(change.sha256, size)


def reference_object(db: sqlite3.Connection, blobs: Blobs, repo_id: int, sha256: str, size: int) -> None:
    """Reference a content from a repository. ``db`` holds the write lock, so no other process deletes it."""
    if not blobs.path(sha256).exists():
        raise HubFailure(503, "The content has been deleted since; try again")
    db.execute("INSERT OR IGNORE INTO objects VALUES (?, ?, ?)", (repo_id, sha256, size))


def _update_card(db: sqlite3.Connection, blobs: Blobs, repo: Repo, readme: Entry | None) -> None:
    card: dict[str, Any] = {}
    if readme is not None and readme.sha256 is not None:
        with blobs.path(readme.sha256).open("rb") as file:
            text = file.read(2 * CARD_BYTES).decode(errors="replace")
        try:
            card = read_card(text)
        except BadCard:
            card = {}  # the commit is valid all the same; clients check the card beforehand
    db.execute("UPDATE repos SET card = ? WHERE id = ?", (json.dumps(card), repo.id))
    db.execute("DELETE FROM repo_tags WHERE repo_id = ?", (repo.id,))
    db.executemany("INSERT INTO repo_tags VALUES (?, ?)", ((repo.id, tag) for tag in tags_of(card)))
