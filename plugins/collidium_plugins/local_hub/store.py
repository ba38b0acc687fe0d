"""Storage of the hub in one directory: metadata in SQLite, contents named by their SHA-256, and its keys.

The keys sign tokens that expire: upload addresses, permits to upload by Xet, and consent tickets.

Several server processes share it. Every write transaction takes the write lock first, so that none fails
half-way with a busy database.

The quota is counted by triggers, as contents are added in several places. Deleted files count: history keeps
them.
"""

from __future__ import annotations

import hashlib
import math
import queue
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from collidium.files.data_directory import make_private, make_private_file
from collidium.files.held import HeldFile, sweep
from collidium.files.write_ahead_log import BUSY_SECONDS, use_write_ahead_log
from collidium_plugins.local_hub.xet import XetSessions

#: Migrations, one per schema version. Released ones never change.
VERSIONS: Final = sorted(Path(__file__).with_name("schema").glob("*.sql"))
SCHEMA_VERSION: Final = len(VERSIONS)

_ALGORITHM: Final = "HS256"


class Database:
    """A pool of connections to the SQLite file at ``path``. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        #: When a writer last waited in vain for another process.
        self._held_at = 0.0
        use_write_ahead_log(path)
        with self.writing() as db:
            _migrate(db)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction: one consistent snapshot."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def writing(self, asked_at: float = math.inf) -> Iterator[sqlite3.Connection]:
        """A write transaction, which excludes all other writers.

        If another one has waited in vain since ``asked_at`` (a monotonic time), this one does not wait, too.
        """
        if self._held_at > asked_at:
            raise sqlite3.OperationalError("another process holds the hub's database")
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    def close(self) -> None:
        """Close the idle connections. Idempotent."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            db = self._idle.get_nowait()
        except queue.Empty:
            db = self._connect()
        try:
            db.execute(begin)
            yield db
            db.execute("COMMIT")
        except BaseException as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                self._held_at = time.monotonic()
            # Closing rolls back. A failed connection is not reused.
            db.close()
            raise
        self._idle.put(db)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        return db


def _migrate(db: sqlite3.Connection) -> None:
    """Migrate the database to SCHEMA_VERSION. Raises RuntimeError for a later version."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise RuntimeError(
            f"the local hub's files are of version {version}; this release reads {SCHEMA_VERSION} and earlier"
        )
    for migration in VERSIONS[version:]:
        for statement in migration.read_text(encoding="utf-8").split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def now() -> str:
    """The current time in the hub's format: ``2026-01-01T00:00:00.000Z``."""
    return later(0)


def later(seconds: float) -> str:
    """The time ``seconds`` from now, in the format of :func:`now`."""
    time = datetime.now(UTC) + timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Blobs:
    """File contents at ``directory/ab/abcd…``; incomplete ones in ``uploads`` on the same file system."""

    def __init__(self, directory: Path, uploads: Path) -> None:
        self._directory = directory
        self.uploads = uploads

    def path(self, sha256: str) -> Path:
        """The path of a content, which may not exist."""
        return self._directory / sha256[:2] / sha256

    def write(self, content: bytes) -> str:
        """Store a small content and return its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.path(sha256).exists():
            file = HeldFile.create(self.uploads)
            try:
                file.write(content, len(content))
                file.move_to(self.path(sha256))
            finally:
                file.let_go()
        return sha256

    def every(self) -> Iterable[str]:
        """The SHA-256 of all stored contents."""
        return (path.name for path in self._directory.glob("??/*"))

    def delete_unused(self, db: sqlite3.Connection, candidates: Iterable[str]) -> None:
        """Delete those candidates that no repository references. ``db`` holds the write lock.

        Commits check under the same lock that their contents exist, so no referenced content is lost.
        """
        for sha256 in candidates:
            if not db.execute("SELECT 1 FROM objects WHERE sha256 = ? LIMIT 1", (sha256,)).fetchone():
                self.path(sha256).unlink(missing_ok=True)


class Store:
    """Metadata and contents. Consistent after a crash of any of the processes that share it.

    A content is on disk before anything references it, and each request changes metadata in one transaction.
    A killed process leaves unfinished uploads and unreferenced contents, which :meth:`tidy` removes.
    """

    def __init__(self, directory: Path, quota_bytes: int = sys.maxsize) -> None:
        """``quota_bytes`` limits the repositories of one account, together."""
        self.quota = quota_bytes
        make_private(directory.parent)
        make_private(directory)
        directory.chmod(0o700)
        make_private_file(directory / "hub.sqlite3")
        self.database = Database(directory / "hub.sqlite3")
        self.blobs = Blobs(directory / "blobs", directory / "uploads")
        self.sessions = XetSessions(self.blobs.uploads / "xet")
        with self.database.writing() as db:
            self.upload_key = shared_secret(db, "uploads", secrets.token_bytes(32))
            self.xet_key = shared_secret(db, "xet", secrets.token_bytes(32))
            self.ticket_key = shared_secret(db, "tickets", secrets.token_bytes(32))

    def tidy(self) -> None:
        """Remove what killed processes left behind, and uploads by Xet that have expired."""
        sweep(self.blobs.uploads)
        self.sessions.end_idle()
        self.delete_unused(self.blobs.every())

    def delete_unused(self, candidates: Iterable[str], asked_at: float = math.inf) -> None:
        """Delete those contents that no repository references."""
        with self.database.writing(asked_at) as db:
            self.blobs.delete_unused(db, candidates)

    def erase(self, account_id: int) -> None:
        """Delete an account with its tokens, sign-ins and repositories. Repeat it after a crash."""
        owned = "(SELECT id FROM repos WHERE owner_id = ?)"
        with self.database.writing() as db:
            named = f"SELECT DISTINCT sha256 FROM objects WHERE repo_id IN {owned}"  # noqa: S608 -- constant names
            contents = [row[0] for row in db.execute(named, (account_id,))]
            db.execute("DELETE FROM repos WHERE owner_id = ?", (account_id,))
            db.execute("DELETE FROM accounts WHERE id = ?", (account_id,))
        self.sessions.erase(account_id)
        self.delete_unused(contents)

    def close(self) -> None:
        """Close the database. Idempotent."""
        self.database.close()


def find_secret(db: sqlite3.Connection, name: str) -> bytes | None:
    """Return a secret that all processes share; None before its first use."""
    row = db.execute("SELECT value FROM secrets WHERE name = ?", (name,)).fetchone()
    return bytes(row[0]) if row else None


def shared_secret(db: sqlite3.Connection, name: str, made: bytes) -> bytes:
    """Return a secret that all processes share, ``made`` on first use. ``db`` holds the write lock."""
    db.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?)", (name, made))
    return find_secret(db, name) or made


def sign(key: bytes, claims: dict[str, Any], seconds: int) -> str:
    """Return a token with these claims that is valid for ``seconds``."""
    from joserfc import jwt
    from joserfc.jwk import OctKey

    expiring = claims | {"exp": int(time.time()) + seconds}
    return jwt.encode({"alg": _ALGORITHM}, expiring, OctKey.import_key(key), [_ALGORITHM])


def verify(key: bytes, token: str) -> dict[str, Any] | None:
    """Return the claims of a token; None if it was not signed with ``key`` or has expired."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import OctKey

    try:
        claims = jwt.decode(token, OctKey.import_key(key), [_ALGORITHM]).claims
        jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
    except (JoseError, UnicodeError):
        return None
    del claims["exp"]
    return claims
