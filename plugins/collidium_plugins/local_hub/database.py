"""The hub's metadata: one SQLite file that several server processes share.

Every transaction that writes takes the write lock first, so that none fails half-way for want of it.
"""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from collidium.files.held import use_write_ahead_log

BUSY_SECONDS: Final = 30.0

#: What each version added to the one before it. A version that was released is never changed.
VERSIONS: Final = {
    1: """
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    created_at TEXT NOT NULL
);
-- A token is known by its hash alone.
CREATE TABLE tokens (
    sha256 TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts ON DELETE CASCADE,
    label TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT
) WITHOUT ROWID;
CREATE INDEX tokens_of_account ON tokens (account_id);
-- AUTOINCREMENT: a signed address names a repository by its id, which must never name another.
CREATE TABLE repos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('models', 'datasets', 'spaces')),
    owner_id INTEGER NOT NULL REFERENCES accounts,
    name TEXT NOT NULL COLLATE NOCASE,
    private INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    modified_at TEXT NOT NULL,
    card TEXT NOT NULL DEFAULT '{}',
    UNIQUE (kind, owner_id, name)
);
CREATE INDEX repos_by_modification ON repos (kind, modified_at, id);
CREATE TABLE repo_tags (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (repo_id, tag)
) WITHOUT ROWID;
CREATE INDEX repos_of_tag ON repo_tags (tag, repo_id);
CREATE TABLE refs (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('branch', 'tag')),
    name TEXT NOT NULL,
    commit_oid TEXT NOT NULL,
    PRIMARY KEY (repo_id, kind, name)
) WITHOUT ROWID;
CREATE TABLE commits (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    oid TEXT NOT NULL,
    parent TEXT,
    tree TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (repo_id, oid)
) WITHOUT ROWID;
CREATE TABLE trees (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    oid TEXT NOT NULL,
    entries TEXT NOT NULL,
    PRIMARY KEY (repo_id, oid)
);
-- Which contents a repository may name. Kept per repository: who knows a hash does not have the file.
CREATE TABLE objects (
    repo_id INTEGER NOT NULL REFERENCES repos ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (repo_id, sha256)
) WITHOUT ROWID;
CREATE INDEX objects_by_content ON objects (sha256);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL);
""",
    2: """
-- What an account allowed an application, once. Codes and tokens made from it end with it.
CREATE TABLE grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    nonce TEXT,
    granted_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
);
CREATE INDEX grants_of_account ON grants (account_id);
CREATE INDEX grants_by_expiry ON grants (expires_at);
-- What an application gives once for tokens: a code, or a refresh token. Used ones stay, to be recognised.
CREATE TABLE single_use_tokens (
    sha256 TEXT PRIMARY KEY,
    grant_id INTEGER NOT NULL REFERENCES grants ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('code', 'refresh')),
    redirect_uri TEXT,
    code_challenge TEXT,
    expires_at TEXT NOT NULL,
    used_at TEXT
) WITHOUT ROWID;
CREATE INDEX single_use_tokens_of_grant ON single_use_tokens (grant_id);
-- Scopes of tokens made from a grant. Other tokens may do everything.
ALTER TABLE tokens ADD COLUMN scopes TEXT;
ALTER TABLE tokens ADD COLUMN grant_id INTEGER REFERENCES grants ON DELETE CASCADE;
CREATE INDEX tokens_of_grant ON tokens (grant_id);
""",
    3: """
-- What a repository takes, of its contents, folders and commits; counted when one is added.
ALTER TABLE repos ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX repos_of_owner ON repos (owner_id, bytes);
CREATE TRIGGER objects_counted AFTER INSERT ON objects
BEGIN UPDATE repos SET bytes = bytes + NEW.size WHERE id = NEW.repo_id; END;
CREATE TRIGGER trees_counted AFTER INSERT ON trees
BEGIN UPDATE repos SET bytes = bytes + length(NEW.entries) WHERE id = NEW.repo_id; END;
CREATE TRIGGER commits_counted AFTER INSERT ON commits
BEGIN UPDATE repos SET bytes = bytes + 200 + length(NEW.title || NEW.description) WHERE id = NEW.repo_id; END;
UPDATE repos SET bytes = (SELECT coalesce(sum(size), 0) FROM objects WHERE repo_id = repos.id);
""",
    4: """
ALTER TABLE accounts ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN email TEXT NOT NULL DEFAULT '';
-- A link that signs in once, and is gone then.
CREATE TABLE sign_in_links (
    sha256 TEXT PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts ON DELETE CASCADE,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sign_in_links_of_account ON sign_in_links (account_id);
""",
}
SCHEMA_VERSION: Final = max(VERSIONS)


class Database:
    """Connections to the file at ``path``, used from threads and given back after each transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        use_write_ahead_log(path)
        with self.writing() as db:
            _lay_out(db)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all processes; kept whole or not at all."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    def close(self) -> None:
        """Close the idle connections. Idempotent."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        db = self._take()
        try:
            db.execute(begin)
            yield db
            db.execute("COMMIT")
        except BaseException:
            # Closing rolls back; a connection that has failed is not used again.
            db.close()
            raise
        self._idle.put(db)

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        return db


def _lay_out(db: sqlite3.Connection) -> None:
    """Migrate the file to this version; a later one is refused."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise RuntimeError(
            f"the local hub's files are of version {version}; this release reads {SCHEMA_VERSION} and earlier"
        )
    for number in range(version + 1, SCHEMA_VERSION + 1):
        for statement in VERSIONS[number].split(";\n"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {number}")


def now() -> str:
    """The current time in the hub's format: ``2026-01-01T00:00:00.000Z``."""
    return later(0)


def later(seconds: float) -> str:
    """The time after so many seconds, in the format of :func:`now`."""
    time = datetime.now(UTC) + timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
