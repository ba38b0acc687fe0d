"""Where the platform keeps files: submitted predictions, outputs of simulations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

_KEY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def check_key(key: str) -> str:
    """Return ``key`` if it is relative, lower-case and free of tricks; raises ValueError otherwise."""
    if len(key) > 512 or not _KEY.fullmatch(key):
        raise ValueError(f"not a storage key: {key!r}")
    return key


class Storage(ABC):
    """Files by key. A file is there whole or not at all; putting a key again replaces it.

    Every method but ``close`` raises :class:`StorageUnavailable` while the backend cannot do its work.
    """

    name: str

    @abstractmethod
    async def put(self, key: str, path: Path) -> None:
        """Keep a copy of the file at ``path``; ``path`` itself is left alone."""

    @abstractmethod
    async def get(self, key: str, path: Path) -> None:
        """Write the file to ``path``. Raises :class:`MissingFile`."""

    @abstractmethod
    async def exists(self, key: str) -> bool:
        """Whether a whole file is kept under ``key``."""

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Forget the file; nothing happens when there is none."""

    @abstractmethod
    async def close(self) -> None:
        """Give back connections. Idempotent."""


class MissingFile(LookupError):
    """No file is kept under this key."""


class StorageUnavailable(RuntimeError):
    """The place where files are kept cannot be reached, is full, or broken: not now."""
