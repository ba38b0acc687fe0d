"""Commits: a linear history per branch, each with its tree."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collidium_plugins.local_hub.database import now
from collidium_plugins.local_hub.trees import Entry, Path, Trees, commit_oid

_COLUMNS = "oid, parent, tree, title, description, author, created_at"

#: How far back the last change of a file is searched for; beyond, the oldest commit seen is named.
SEARCHED_COMMITS = 1000


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: a state of a repository and its author."""

    oid: str
    parent: str | None
    tree: str
    title: str
    description: str
    author: str
    created_at: str


def lfs_files(db: sqlite3.Connection, repo_id: int) -> Iterator[tuple[Path, Entry, Commit]]:
    """Every content that was ever in the repository by LFS, once, with its first path and commit."""
    trees, walked, found = Trees(db, repo_id), set[str](), set[str | None]()
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE repo_id = ? ORDER BY created_at, oid",  # noqa: S608 -- fixed columns
        (repo_id,),
    )
    for commit in (Commit(*row) for row in rows):
        for path, entry in trees.walk(commit.tree, skipping=walked):
            if entry.lfs and entry.sha256 not in found:
                found.add(entry.sha256)
                yield path, entry, commit


def get_commit(db: sqlite3.Connection, repo_id: int, oid: str) -> Commit | None:
    """The commit of that id, or None."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE repo_id = ? AND oid = ?",  # noqa: S608 -- fixed columns
        (repo_id, oid),
    ).fetchone()
    return Commit(*row) if row else None


def add_commit(
    db: sqlite3.Connection,
    repo_id: int,
    tree: str,
    *,
    parent: str | None,
    title: str,
    description: str,
    author: str,
) -> Commit:
    """Keep a commit; moving the branch to it is the caller's part."""
    time = now()
    text = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
    oid = commit_oid(f"{text}author {author} {time}\n\n{title}\n\n{description}")
    commit = Commit(oid, parent, tree, title, description, author, time)
    db.execute(
        "INSERT OR IGNORE INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (repo_id, oid, parent, tree, title, description, author, time),
    )
    return commit


def first_commit(db: sqlite3.Connection, repo_id: int, author: str) -> Commit:
    """An empty repository has a commit too: clients want one."""
    tree = Trees(db, repo_id).write(None, {})
    return add_commit(db, repo_id, tree, parent=None, title="initial commit", description="", author=author)


def ancestors(db: sqlite3.Connection, repo_id: int, commit: Commit) -> Iterator[Commit]:
    """The commit and those before it, newest first."""
    current: Commit | None = commit
    while current is not None:
        yield current
        current = get_commit(db, repo_id, current.parent) if current.parent else None


def last_changes(
    db: sqlite3.Connection, repo_id: int, commit: Commit, paths: Sequence[Path]
) -> dict[Path, Commit]:
    """For each path, the last commit that changed what is there."""
    trees = Trees(db, repo_id)
    changed: dict[Path, Commit] = {}
    missing = dict.fromkeys(paths, None)
    newer = None
    for number, older in enumerate(ancestors(db, repo_id, commit)):
        if newer is not None and newer.tree != older.tree:
            for path in [
                path for path in missing if trees.find(newer.tree, path) != trees.find(older.tree, path)
            ]:
                changed[path] = newer
                del missing[path]
        newer = older
        if not missing or number == SEARCHED_COMMITS:
            break
    return changed | {path: newer for path in missing if newer is not None}
