"""What a file's content must be: its size and the hash that the hub knows it by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hashlib import _Hash

_BLOCK: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Content:
    """``size`` bytes with the hexadecimal hash ``digest``.

    64 digits are the sha256 of the bytes; 40 are the sha1 by which git knows a file that is not in LFS.
    """

    size: int
    digest: str

    def hasher(self) -> _Hash:
        """A hash of the kind, that has yet to see the bytes."""
        if len(self.digest) == 64:
            return hashlib.sha256()
        # Git's own name for a file, no protection against anybody.
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)

    def is_in(self, path: Path) -> bool:
        """Whether the file is there with this very content; reads all of it."""
        try:
            with path.open("rb", buffering=0) as file:
                hasher = self.hasher()
                while block := file.read(_BLOCK):
                    hasher.update(block)
        except FileNotFoundError:
            return False
        return hasher.hexdigest() == self.digest

    def may_be_in(self, path: Path) -> bool:
        """Whether the file is there with this size; reads nothing of it."""
        try:
            return path.stat().st_size == self.size
        except FileNotFoundError:
            return False
