"""Signed upload addresses: each permits the upload of one content for a limited time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
import time
from dataclasses import dataclass
from typing import Final

#: A client asks for all its addresses first and may be busy for hours before it uses the last.
VALID_SECONDS: Final = 12 * 3600


@dataclass(frozen=True, slots=True)
class Upload:
    """One content for one repository."""

    repo_id: int
    sha256: str
    size: int
    expires: int


class Signer:
    """Signs uploads with a key that all processes share and no restart changes."""

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
