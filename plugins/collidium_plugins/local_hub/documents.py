"""Repositories, commits and files as JSON documents in the format of the hub's clients."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from collidium_plugins.local_hub.accounts import Caller
from collidium_plugins.local_hub.history import Commit
from collidium_plugins.local_hub.repositories import Repo
from collidium_plugins.local_hub.trees import Entry, Path, Trees


def account_document(account: Caller) -> dict[str, Any]:
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


def _role(account: Caller) -> str:
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
    """The files of a repository, with sizes and names of their contents if asked for."""
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
    """A file or folder in a listing, with its last change if that is known."""
    kind = "directory" if entry.is_directory else "file"
    document: dict[str, Any] = {"type": kind, "oid": entry.oid, "size": entry.size, "path": "/".join(path)}
    if entry.lfs:
        document["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
    if last is not None:
        document["lastCommit"] = {"id": last.oid, "title": last.title, "date": last.created_at}
    return document


def lfs_file_document(path: Path, entry: Entry, commit: Commit) -> dict[str, Any]:
    """A content by LFS, and the commit that added it."""
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
