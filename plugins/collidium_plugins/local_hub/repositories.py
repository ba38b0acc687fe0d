"""Repositories with their access rights, branches, tags and commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace

from collidium_plugins.local_hub.accounts import HubCaller
from collidium_plugins.local_hub.failures import (
    HubFailure,
    invalid,
    not_signed_in,
    repo_not_found,
    revision_not_found,
)
from collidium_plugins.local_hub.names import KINDS, OID, Kind, check_ref_name, is_name, is_revision
from collidium_plugins.local_hub.store import now
from collidium_plugins.local_hub.trees import Entry, Path, Trees, commit_oid

_COMMIT_COLUMNS = "oid, parent, tree, title, description, author, created_at"

#: Commits that are searched for the last change of a file; beyond, the oldest of them is returned.
SEARCHED_COMMITS = 1000
MAIN = "main"

_BAD_NAME = "Invalid repository name: use letters, digits and single - _ . inside"

_COLUMNS = "r.id, r.kind, a.name, r.name, r.private, r.created_at, r.modified_at, r.card, r.owner_id"


@dataclass(frozen=True, slots=True)
class Commit:
    oid: str
    parent: str | None
    tree: str
    title: str
    description: str
    author: str
    created_at: str


def lfs_files(db: sqlite3.Connection, repo_id: int) -> Iterator[tuple[Path, Entry, Commit]]:
    """Yield each LFS content of the whole history once, with its first path and commit."""
    trees, walked, found = Trees(db, repo_id), set[str](), set[str | None]()
    rows = db.execute(
        f"SELECT {_COMMIT_COLUMNS} FROM commits WHERE repo_id = ? ORDER BY created_at, oid",  # noqa: S608 -- fixed columns
        (repo_id,),
    )
    for commit in (Commit(*row) for row in rows):
        for path, entry in trees.walk(commit.tree, skipping=walked):
            if entry.lfs and entry.sha256 not in found:
                found.add(entry.sha256)
                yield path, entry, commit


def get_commit(db: sqlite3.Connection, repo_id: int, oid: str) -> Commit | None:
    """Return the commit with this id, or None."""
    row = db.execute(
        f"SELECT {_COMMIT_COLUMNS} FROM commits WHERE repo_id = ? AND oid = ?",  # noqa: S608 -- fixed columns
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
    """Store a commit. The caller moves the branch to it."""
    time = now()
    text = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
    oid = commit_oid(f"{text}author {author} {time}\n\n{title}\n\n{description}")
    commit = Commit(oid, parent, tree, title, description, author, time)
    values = (repo_id, *astuple(commit))
    db.execute("INSERT OR IGNORE INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    return commit


def ancestors(db: sqlite3.Connection, repo_id: int, commit: Commit) -> Iterator[Commit]:
    """Yield the commit and its ancestors, newest first."""
    current: Commit | None = commit
    while current is not None:
        yield current
        current = get_commit(db, repo_id, current.parent) if current.parent else None


def last_changes(
    db: sqlite3.Connection, repo_id: int, commit: Commit, paths: Sequence[Path]
) -> dict[Path, Commit]:
    """Return the last commit that changed each path."""
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


@dataclass(frozen=True, slots=True)
class Repo:
    id: int
    kind: Kind
    namespace: str
    name: str
    private: bool
    created_at: str
    modified_at: str
    #: The front matter of its README, as JSON.
    card: str
    owner_id: int

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


def repo_of_row(row: sqlite3.Row) -> Repo:
    """Return the repository of a row of :func:`select`."""
    identity, kind, namespace, name, private, *rest = row
    return Repo(identity, kind, namespace, name, bool(private), *rest)


def select(tail: str) -> str:
    """Return a query for rows of :func:`repo_of_row`; ``tail`` must not contain user input."""
    tables = "repos r JOIN accounts a ON a.id = r.owner_id"
    return f"SELECT {_COLUMNS} FROM {tables} {tail}"  # noqa: S608 -- no user input


# -- access rights ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepositoryTarget:
    """The repository that a request names, and the caller."""

    kind: Kind
    namespace: str
    name: str
    caller: HubCaller | None


def find(db: sqlite3.Connection, kind: Kind, namespace: str, name: str) -> Repo | None:
    """Return a repository without checking access. Names are case-insensitive."""
    if not (is_name(namespace) and is_name(name)):
        return None
    row = db.execute(
        select("WHERE r.kind = ? AND a.name = ? AND r.name = ?"), (kind, namespace, name)
    ).fetchone()
    return repo_of_row(row) if row else None


def readable(db: sqlite3.Connection, target: RepositoryTarget) -> Repo:
    """Return the repository if the caller may see it; raises HubError otherwise."""
    repo = find(db, target.kind, target.namespace, target.name)
    caller = target.caller
    if repo is None or (repo.private and repo.owner_id != sees_private_of(caller)):
        raise repo_not_found(anonymous=caller is None)
    return repo


def sees_private_of(caller: HubCaller | None) -> int | None:
    """Return the id of the account whose private repositories the caller may see, if any."""
    return caller.id if caller is not None and caller.may("read-repos") else None


def writable(db: sqlite3.Connection, target: RepositoryTarget, scope: str = "write-repos") -> Repo:
    """Return the repository if the caller owns it, by a token with the scope; raises HubError otherwise."""
    repo = readable(db, target)
    if target.caller is None:
        raise not_signed_in()
    if target.caller.id != repo.owner_id:
        raise HubFailure(403, f"Only {repo.namespace} may change {repo.full_name}")
    _check_scope(target.caller, scope)
    return repo


def _check_scope(caller: HubCaller, scope: str) -> None:
    if not caller.may(scope):
        raise HubFailure(403, f"This sign-in does not include {scope}: sign in again and allow it")


# -- create, change, delete ------------------------------------------------------------------------------


def create(
    db: sqlite3.Connection,
    caller: HubCaller | None,
    kind: object,
    namespace: object,
    name: object,
    private: bool,
) -> tuple[Repo, bool]:
    """Create a repository with an empty first commit on ``main``; returns it and whether it is new."""
    if caller is None:
        raise not_signed_in()
    if kind not in KINDS:
        raise invalid("type must be model, dataset or space")
    if not is_name(name):
        raise invalid(_BAD_NAME)
    if namespace and (not isinstance(namespace, str) or namespace.lower() != caller.name.lower()):
        raise HubFailure(403, f"{caller.name} cannot create repositories for other accounts")
    _check_scope(caller, "manage-repos")
    target = RepositoryTarget(kind, caller.name, name, caller)
    time = now()
    made = db.execute(
        "INSERT OR IGNORE INTO repos (kind, owner_id, name, private, created_at, modified_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (kind, caller.id, name, private, time, time),
    )
    repo = readable(db, target)
    if made.rowcount:
        # Clients expect a commit in every repository.
        tree, title = Trees(db, repo.id).write(None, {}), "initial commit"
        first = add_commit(db, repo.id, tree, parent=None, title=title, description="", author=caller.name)
        db.execute("INSERT INTO refs VALUES (?, 'branch', ?, ?)", (repo.id, MAIN, first.oid))
    return repo, bool(made.rowcount)


def rename(db: sqlite3.Connection, target: RepositoryTarget, namespace: str, name: str) -> Repo:
    """Rename the repository within the same account. Its old name becomes free."""
    repo = writable(db, target, "manage-repos")
    if namespace.lower() != repo.namespace.lower():
        raise HubFailure(501, f"This hub cannot move repositories of {repo.namespace} to other accounts")
    if not is_name(name):
        raise invalid(_BAD_NAME)
    made = db.execute("UPDATE OR IGNORE repos SET name = ? WHERE id = ?", (name, repo.id))
    if not made.rowcount:
        raise HubFailure(409, f"There is a repository {repo.namespace}/{name} already")
    return replace(repo, name=name)


def set_private(db: sqlite3.Connection, target: RepositoryTarget, private: bool | None) -> Repo:
    """Make the repository private or public; None changes nothing."""
    repo = writable(db, target, "manage-repos")
    if private is None:
        return repo
    db.execute("UPDATE repos SET private = ? WHERE id = ?", (private, repo.id))
    return replace(repo, private=private)


def delete(db: sqlite3.Connection, target: RepositoryTarget) -> list[str]:
    """Delete the repository with its history; returns the contents that it referenced."""
    repo = writable(db, target, "manage-repos")
    contents = [row[0] for row in db.execute("SELECT sha256 FROM objects WHERE repo_id = ?", (repo.id,))]
    db.execute("DELETE FROM repos WHERE id = ?", (repo.id,))
    return contents


def touch(db: sqlite3.Connection, repo: Repo) -> None:
    """Set the time of the last change to now."""
    db.execute("UPDATE repos SET modified_at = ? WHERE id = ?", (now(), repo.id))


def owns_object(db: sqlite3.Connection, repo: Repo, sha256: str) -> int | None:
    """Return the size of a content that was uploaded to this repository, or None."""
    row = db.execute(
        "SELECT size FROM objects WHERE repo_id = ? AND sha256 = ?", (repo.id, sha256)
    ).fetchone()
    return row[0] if row else None


def check_quota(db: sqlite3.Connection, repo_id: int, quota: int, more: int = 0) -> None:
    """Raise HubError 403 if the repositories of the owner, with ``more`` bytes, exceed the quota."""
    (held,) = db.execute(
        "SELECT coalesce(sum(bytes), 0) FROM repos "
        "WHERE owner_id = (SELECT owner_id FROM repos WHERE id = ?)",
        (repo_id,),
    ).fetchone()
    if held + more > quota:
        raise HubFailure(
            403,
            f"The account's repositories would take {held + more:,} bytes of a quota of {quota:,}: "
            "delete repositories that are not needed",
        )


# -- revisions -------------------------------------------------------------------------------------------


def revision(db: sqlite3.Connection, repo: Repo, name: str) -> Commit:
    """Return the commit of a branch, a tag or a full commit id; raises HubError 404."""
    if not is_revision(name):
        raise revision_not_found(name)
    plain = name.removeprefix("refs/heads/").removeprefix("refs/tags/")
    row = db.execute(
        "SELECT commit_oid FROM refs WHERE repo_id = ? AND name = ? ORDER BY kind LIMIT 1", (repo.id, plain)
    ).fetchone()
    oid = row[0] if row else name
    commit = get_commit(db, repo.id, oid) if OID.fullmatch(oid) else None
    if commit is None:
        raise revision_not_found(name)
    return commit


def branch_head(db: sqlite3.Connection, repo: Repo, name: str) -> Commit:
    """Return the last commit of a branch; raises HubError 404."""
    if not is_revision(name):
        raise revision_not_found(name)
    row = db.execute(
        "SELECT commit_oid FROM refs WHERE repo_id = ? AND kind = 'branch' AND name = ?", (repo.id, name)
    ).fetchone()
    if row is None:
        raise revision_not_found(name)
    return revision(db, repo, row[0])


def refs(db: sqlite3.Connection, repo: Repo, kind: str) -> list[tuple[str, str]]:
    """Return names and commits of all branches or tags."""
    rows = db.execute(
        "SELECT name, commit_oid FROM refs WHERE repo_id = ? AND kind = ? ORDER BY name", (repo.id, kind)
    )
    return [(name, oid) for name, oid in rows]


def add_ref(db: sqlite3.Connection, repo: Repo, kind: str, name: object, start: str) -> None:
    """Create a branch or tag at a revision; raises HubError 409 if the name exists."""
    name = check_ref_name(name)
    commit = revision(db, repo, start)
    taken = db.execute("SELECT 1 FROM refs WHERE repo_id = ? AND name = ?", (repo.id, name)).fetchone()
    if taken:
        raise HubFailure(409, f"There is a branch or tag {name!r} already")
    db.execute("INSERT INTO refs VALUES (?, ?, ?, ?)", (repo.id, kind, name, commit.oid))


def delete_ref(db: sqlite3.Connection, repo: Repo, kind: str, name: str) -> None:
    """Delete a tag, or a branch other than ``main``. Its commits stay."""
    if kind == "branch" and name == MAIN:
        raise HubFailure(403, f"The branch {MAIN!r} cannot be deleted")
    gone = db.execute(
        "DELETE FROM refs WHERE repo_id = ? AND kind = ? AND name = ?", (repo.id, kind, name)
    ).rowcount
    if not gone:
        raise revision_not_found(name)
