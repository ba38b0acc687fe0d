"""All data of the hub, in one directory: metadata in SQLite, contents of files by their SHA-256.

A file is there whole or not at all. Several server processes share the database. Every transaction that
writes takes the write lock first, so that none fails half-way for want of it.
"""

from __future__ import annotations

import hashlib
import hmac
import queue
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from collidium.files.data_directory import make_private, make_private_file
from collidium.files.held import HeldFile, sweep, use_write_ahead_log

BUSY_SECONDS: Final = 30.0

#: What each version added to the one before it. A version that was released is never changed.
VERSIONS: Final = sorted(Path(__file__).with_name("schema").glob("*.sql"))
SCHEMA_VERSION: Final = len(VERSIONS)

#: A client asks for all its addresses first and may be busy for hours before it uses the last.
VALID_SECONDS: Final = 12 * 3600
#: Largest file: what an operator's disk should hold is theirs to watch, this only stops nonsense.
LARGEST: Final = 64 * 1024**3


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
    for added in VERSIONS[version:]:
        for statement in added.read_text(encoding="utf-8").split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def now() -> str:
    """The current time in the hub's format: ``2026-01-01T00:00:00.000Z``."""
    return later(0)


def later(seconds: float) -> str:
    """The time after so many seconds, in the format of :func:`now`."""
    time = datetime.now(UTC) + timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Blobs:
    """Files ``directory/ab/abcd…``; new ones grow in ``uploads`` on the same file system."""

    def __init__(self, directory: Path, uploads: Path) -> None:
        self._directory = directory
        self.uploads = uploads

    def path(self, sha256: str) -> Path:
        """Where the content is, if it is there."""
        return self._directory / sha256[:2] / sha256

    def write(self, content: bytes) -> str:
        """Keep a small content and return its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.path(sha256).exists():
            file = HeldFile.create(self.uploads)
            try:
                file.write(content, len(content))
                file.move_to(self.path(sha256))
            finally:
                file.let_go()
        return sha256

    def has(self, sha256: str) -> bool:
        return self.path(sha256).exists()

    def every(self) -> Iterable[str]:
        """All contents that are kept."""
        return (path.name for path in self._directory.glob("??/*"))

    def forget_unused(self, db: sqlite3.Connection, candidates: Iterable[str]) -> int:
        """Delete candidates that no repository refers to; return their number. ``db`` has the write lock.

        A commit checks under the write lock that its contents are still there, so none of them is lost.
        """
        forgotten = 0
        for sha256 in candidates:
            if not db.execute("SELECT 1 FROM objects WHERE sha256 = ? LIMIT 1", (sha256,)).fetchone():
                self.path(sha256).unlink(missing_ok=True)
                forgotten += 1
        return forgotten


class Store:
    """Metadata and contents; shared by any number of processes, and consistent after any of them dies.

    A content is on disk before anything refers to it, and all that a request changes is one transaction.
    A killed process leaves unfinished uploads and unreferenced contents: :meth:`tidy` removes them.
    """

    def __init__(self, directory: Path, quota_bytes: int = sys.maxsize) -> None:
        """``quota_bytes`` is how much the repositories of one account may take."""
        self.quota = quota_bytes
        make_private(directory.parent)
        make_private(directory)
        directory.chmod(0o700)
        make_private_file(directory / "hub.sqlite3")
        self.database = Database(directory / "hub.sqlite3")
        self.blobs = Blobs(directory / "blobs", directory / "uploads")
        with self.database.writing() as db:
            self.signer = Signer(shared_key(db, "uploads"))
            self.ticket_key = shared_key(db, "tickets")

    def tidy(self) -> None:
        """Remove what killed processes left."""
        sweep(self.blobs.uploads)
        self.forget_unused(self.blobs.every())

    def forget_unused(self, candidates: Iterable[str]) -> None:
        """Delete those contents that no repository refers to."""
        with self.database.writing() as db:
            self.blobs.forget_unused(db, candidates)

    def erase(self, account_id: int) -> None:
        """Delete an account with its tokens, sign-ins and repositories; killed in between, it is repeated."""
        owned = "(SELECT id FROM repos WHERE owner_id = ?)"
        with self.database.writing() as db:
            named = f"SELECT DISTINCT sha256 FROM objects WHERE repo_id IN {owned}"  # noqa: S608 -- constant names
            contents = [row[0] for row in db.execute(named, (account_id,))]
            db.execute("DELETE FROM repos WHERE owner_id = ?", (account_id,))
            db.execute("DELETE FROM accounts WHERE id = ?", (account_id,))
        self.forget_unused(contents)

    def close(self) -> None:
        """Close the database. Idempotent."""
        self.database.close()


# -- addresses for uploads -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Upload:
    """One content for one repository."""

    repo_id: int
    sha256: str
    size: int
    expires: int


class Signer:
    """Signs uploads with a key that all processes share and no restart changes.

    Each address permits the upload of one content for a limited time.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, repo_id: int, sha256: str, size: int) -> tuple[Upload, str]:
        """A new upload, and its signature."""
        upload = Upload(repo_id, sha256, size, int(time.time()) + VALID_SECONDS)
        return upload, self._signature(upload)

    def is_valid(self, upload: Upload, signature: str) -> bool:
        """Whether this hub signed the upload and it has not expired."""
        good = hmac.compare_digest(self._signature(upload).encode(), signature.encode(errors="replace"))
        return good and upload.expires > time.time()

    def _signature(self, upload: Upload) -> str:
        text = f"{upload.repo_id}:{upload.sha256}:{upload.size}:{upload.expires}"
        return hmac.digest(self._key, text.encode(), hashlib.sha256).hex()


def shared_key(db: sqlite3.Connection, name: str) -> bytes:
    """The key of that name, made when it is first needed."""
    db.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?)", (name, secrets.token_bytes(32)))
    (key,) = db.execute("SELECT value FROM secrets WHERE name = ?", (name,)).fetchone()
    return bytes(key)
