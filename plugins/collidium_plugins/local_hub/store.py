"""All data of the hub, in one directory; contents of files by their SHA-256, each whole or not at all."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from collidium.files.data_directory import make_private, make_private_file
from collidium.files.held import HeldFile, sweep
from collidium_plugins.local_hub.database import Database
from collidium_plugins.local_hub.signing import Signer, shared_key

#: Largest file: what an operator's disk should hold is theirs to watch, this only stops nonsense.
LARGEST: Final = 64 * 1024**3


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

    def close(self) -> None:
        """Close the database. Idempotent."""
        self.database.close()
