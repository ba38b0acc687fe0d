"""JSON documents of accounts, repositories, commits and files, in the format of ``huggingface_hub``.

Lists of repositories are filtered by tags, author and search text, and paginated.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from collidium_plugins.local_hub.accounts import HubCaller
from collidium_plugins.local_hub.failures import invalid
from collidium_plugins.local_hub.names import Kind
from collidium_plugins.local_hub.repositories import (
    MAIN,
    Commit,
    Repo,
    branch_head,
    repo_of_row,
    sees_private_of,
    select,
)
from collidium_plugins.local_hub.trees import Entry, Path, Trees

PAGE: Final = 1000
#: A page of repositories with their files ends with the one that makes it exceed this number of files.
FILES: Final = 20_000
FILTERS: Final = 20
TEXT_LENGTH: Final = 200

#: Sort keys of lists, in descending order. Downloads and likes are not counted.
_SORTS: Final = {
    "lastModified": "r.modified_at",
    "createdAt": "r.created_at",
    "downloads": "''",
    "likes": "''",
    "trendingScore": "''",
}


def account_document(account: HubCaller) -> dict[str, Any]:
    """The response to whoami."""
    token = {
        "displayName": account.token_label,
        "role": _role(account),
        "createdAt": account.token_created_at,
    }
    return {
        "type": "user",
        "id": str(account.id),
        "name": account.name,
        "fullname": account.display_name or account.name,
        "email": account.email if account.email and account.may("email") else None,
        "emailVerified": False,
        "canPay": False,
        "isPro": False,
        "avatarUrl": "",
        "orgs": [],
        "auth": {"type": "access_token", "accessToken": token},
    }


def _role(account: HubCaller) -> str:
    if account.may("manage-repos"):
        return "write"
    return "fineGrained" if account.may("write-repos") else "read"


def repo_document(db: sqlite3.Connection, repo: Repo, commit: Commit) -> dict[str, Any]:
    """A repository, without its files."""
    card = json.loads(repo.card)
    tags = [
        row[0] for row in db.execute("SELECT tag FROM repo_tags WHERE repo_id = ? ORDER BY tag", (repo.id,))
    ]
    document = {
        "_id": str(repo.id),
        "id": repo.full_name,
        "author": repo.namespace,
        "sha": commit.oid,
        "lastModified": repo.modified_at,
        "createdAt": repo.created_at,
        "private": repo.private,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": tags,
        "cardData": card,
    }
    if repo.kind == "models":
        document["modelId"] = repo.full_name
        for name in ("pipeline_tag", "library_name"):
            if isinstance(card.get(name), str):
                document[name] = card[name]
    return document


def sibling_documents(trees: Trees, commit: Commit, *, details: bool) -> list[dict[str, Any]]:
    """The files of a repository; with ``details``, their sizes and ids."""
    return [_sibling(path, entry, details) for path, entry in trees.files(commit.tree)]


def _sibling(path: Path, entry: Entry, details: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"rfilename": "/".join(path)}
    if details:
        document |= {"size": entry.size, "blobId": entry.oid}
        if entry.lfs:
            lfs = {"sha256": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
            document["lfs"] = lfs
    return document


def entry_document(path: Path, entry: Entry, last: Commit | None = None) -> dict[str, Any]:
    """A file or folder in a listing, with its last change if known."""
    kind = "directory" if entry.is_directory else "file"
    document: dict[str, Any] = {"type": kind, "oid": entry.oid, "size": entry.size, "path": "/".join(path)}
    if entry.lfs:
        document["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
    if last is not None:
        document["lastCommit"] = {"id": last.oid, "title": last.title, "date": last.created_at}
    return document


def lfs_file_document(path: Path, entry: Entry, commit: Commit) -> dict[str, Any]:
    """An LFS content, and the commit that added it."""
    return {
        "fileOid": entry.sha256,
        "oid": entry.sha256,
        "filename": "/".join(path),
        "size": entry.size,
        "pushedAt": commit.created_at,
        "ref": None,
    }


def commit_document(commit: Commit) -> dict[str, Any]:
    """A commit in a history."""
    return {
        "id": commit.oid,
        "title": commit.title,
        "message": commit.description,
        "authors": [{"user": commit.author}],
        "date": commit.created_at,
    }


@dataclass(frozen=True, slots=True)
class Query:
    """The filters, order and page of a list."""

    kind: Kind
    filters: Sequence[str] = ()
    author: str = ""
    search: str = ""
    sort: str = "lastModified"
    limit: int = PAGE
    cursor: str = ""
    with_files: bool = False


def list_repos(
    db: sqlite3.Connection, caller: HubCaller | None, query: Query
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of the repositories that the caller may see, and the cursor of the next one."""
    key = _SORTS.get(query.sort)
    if key is None:
        raise invalid(f"sort must be one of {', '.join(_SORTS)}")
    if (
        len(query.filters) > FILTERS
        or max(map(len, (query.author, query.search, *query.filters))) > TEXT_LENGTH
    ):
        raise invalid(f"A list takes at most {FILTERS} filters, and texts of {TEXT_LENGTH} characters")
    conditions, values = _conditions(caller, query)
    if query.cursor:
        conditions.append(f"({key}, r.id) < (?, ?)")
        values += _read_cursor(query.cursor)
    tail = f"WHERE {' AND '.join(conditions)} ORDER BY {key} DESC, r.id DESC LIMIT ?"
    rows = db.execute(select(tail), (*values, query.limit + 1)).fetchall()
    documents: list[dict[str, Any]] = []
    files = 0
    for repo in map(repo_of_row, rows[: query.limit]):
        commit = branch_head(db, repo, MAIN)
        documents.append(repo_document(db, repo, commit))
        if query.with_files:
            siblings = sibling_documents(Trees(db, repo.id), commit, details=False)
            documents[-1]["siblings"] = siblings
            files += len(siblings)
        if files > FILES:
            break
    cursor = None
    if documents and len(rows) > len(documents):
        last = repo_of_row(rows[len(documents) - 1])
        shown = {"lastModified": last.modified_at, "createdAt": last.created_at}
        cursor = _make_cursor(shown.get(query.sort, ""), last.id)
    return documents, cursor


def _conditions(caller: HubCaller | None, query: Query) -> tuple[list[str], list[Any]]:
    conditions = ["r.kind = ?", "(r.private = 0 OR r.owner_id = ?)"]
    values: list[Any] = [query.kind, sees_private_of(caller)]
    if query.author:
        conditions.append("a.name = ?")
        values.append(query.author)
    if query.search:
        conditions.append("instr(lower(a.name || '/' || r.name), lower(?)) > 0")
        values.append(query.search)
    for tag in query.filters:
        conditions.append("EXISTS (SELECT 1 FROM repo_tags t WHERE t.tag = ? AND t.repo_id = r.id)")
        values.append(tag)
    return conditions, values


def _make_cursor(key: str, identity: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([key, identity]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, int]:
    try:
        key, identity = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, RecursionError, TypeError):
        raise invalid("The cursor is not one of this list") from None
    if not isinstance(key, str) or not isinstance(identity, int) or not 0 <= identity < 2**63:
        raise invalid("The cursor is not one of this list")
    return key, identity
