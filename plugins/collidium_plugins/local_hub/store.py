"""All data of the hub, in one directory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from collidium.files.data_directory import make_private, make_private_file
from collidium.files.held import sweep
from collidium_plugins.local_hub.blobs import Blobs
from collidium_plugins.local_hub.database import Database
from collidium_plugins.local_hub.signing import Signer, shared_key


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
