"""What a published dataset says of itself to programs: which files it has, and how to know them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The file in a repository that says it; also how the platform knows what it has published.
MANIFEST: Final = "collidium.json"


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A parquet file of a published dataset."""

    #: Where it lies in the repository.
    path: str
    sha256: str
    size_bytes: int
    #: Events in it.
    rows: int


def sha256_of(path: Path) -> str:
    """The checksum of a file, in hexadecimal. Blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_bytes(content: bytes) -> str:
    """The checksum of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
