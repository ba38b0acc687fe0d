"""The contract of a storage backend, which keeps submitted predictions and simulation outputs."""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Final

_KEY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


def check_key(key: str) -> str:
    """Validate a storage key.

    Parameters
    ----------
    key : str
        A relative path of lower-case letters, digits, ``.``, ``_`` and ``-``, at most 512 characters.

    Returns
    -------
    str
        The key.

    Raises
    ------
    ValueError
        For any other text.

    Examples
    --------
    >>> check_key("outputs/0c62/tracks.parquet")
    'outputs/0c62/tracks.parquet'
    """
    if len(key) > 512 or not _KEY.fullmatch(key):
        raise ValueError(f"not a storage key: {key!r}")
    return key


class Storage(ABC):
    """Files by key. Writes are atomic; a second ``put`` replaces the file.

    Of simultaneous puts of one key one wins, whole. A ``get`` that fails leaves no file behind.
    Every method but ``close`` raises :class:`StorageUnavailable` while the backend fails.
    """

    name: str
    #: Whether processes of other machines, with the same settings, have the same files.
    is_shared: ClassVar[bool] = True

    @abstractmethod
    async def put(self, key: str, path: Path) -> None:
        """Store a copy of a file.

        Parameters
        ----------
        key : str
        path : pathlib.Path
            The file, which is not modified.
        """

    @abstractmethod
    async def get(self, key: str, path: Path) -> None:
        """Write a stored file to a path.

        Parameters
        ----------
        key : str
        path : pathlib.Path

        Raises
        ------
        MissingFile
            If there is no file under the key.
        """

    @abstractmethod
    async def exists(self, key: str) -> bool:
        """Return whether a complete file is stored.

        Parameters
        ----------
        key : str

        Returns
        -------
        bool
        """

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Delete the file, if there is one.

        Parameters
        ----------
        key : str
        """

    async def put_final(self, key: str, path: Path) -> None:
        """Store a file that is never written to again, as ``put`` does.

        A backend may keep the file itself (a hard link) in place of a copy.

        Parameters
        ----------
        key : str
        path : pathlib.Path
        """
        await self.put(key, path)

    async def get_final(self, key: str, path: Path) -> None:
        """Write a stored file to a path that is never written to again, as ``get`` does.

        A backend may give the stored file itself (a hard link) in place of a copy.

        Parameters
        ----------
        key : str
        path : pathlib.Path
            Where no file is yet.

        Raises
        ------
        MissingFile
            If there is no file under the key.
        """
        await self.get(key, path)

    async def check(self) -> None:  # noqa: B027 -- optional
        """Check, when a server starts, that the backend can be used as configured.

        Raises
        ------
        StorageUnavailable
            If it cannot; the message names what is wrong.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections. Idempotent."""


class MissingFile(LookupError):
    """No file is stored under this key."""


class StorageUnavailable(RuntimeError):
    """The backend cannot be reached, is full, or fails; a retry may work."""


async def probe(storage: Storage, directory: Path) -> None:
    """Store a small file, read it back and delete it.

    Parameters
    ----------
    storage : Storage
    directory : pathlib.Path
        An empty directory for local files.

    Raises
    ------
    StorageUnavailable
        If one of these fails, or another content comes back.
    """
    key, content = f"probe/{secrets.token_hex(16)}", secrets.token_bytes(64)
    sent, received = directory / "sent", directory / "received"
    sent.write_bytes(content)
    await storage.put(key, sent)
    try:
        await storage.get(key, received)
    except MissingFile as error:
        raise StorageUnavailable(f"a file that was just stored is not there: {error}") from error
    if received.read_bytes() != content:
        raise StorageUnavailable("a file that was just stored came back with another content")
    await storage.delete(key)
