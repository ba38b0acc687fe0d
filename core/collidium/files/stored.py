"""Reads and keeps files of the storage: the one place that compares them with the hashes of the database."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory


class WrongContent(StorageUnavailable):
    """The storage returned another file than was stored."""


async def fetch(storage: Storage, key: str, path: Path, sha256: str | None, *, final: bool = False) -> str:
    """Write a stored file to a path, once it is known to be what was stored.

    Parameters
    ----------
    storage : Storage
    key : str
    path : pathlib.Path
        Where no file is left unless the content is right.
    sha256 : str or None
        The hash that the database has; None for a file from before it had one.
    final : bool
        Whether the file is never written to, so that it may be a hard link.

    Returns
    -------
    str
        The SHA-256 of the file.

    Raises
    ------
    MissingFile
        If there is no file under the key.
    StorageUnavailable
        WrongContent if the storage returned another content: its failure, which a retry may mend.
    """
    try:
        await (storage.get_final if final else storage.get)(key, path)
        found = await asyncio.to_thread(sha256_of, path)
    except OSError as error:  # a bad sector is met here where the file is a link
        raise StorageUnavailable(f"{key} cannot be read: {error.strerror}") from error
    if found != sha256 is not None:
        from collidium.runtime.metrics import STORAGE_FAILURES  # prometheus_client takes clients 20 ms

        STORAGE_FAILURES.labels("compare").inc()
        await asyncio.to_thread(path.unlink)
        raise WrongContent(
            f"the storage returned another file for {key} than was stored (its SHA-256 is {found})"
        )
    return found


async def keep(storage: Storage, key: str, path: Path, sha256: str, scratch: Path) -> None:
    """Store a file that is named by its content, unless the storage has it; a damaged one is replaced.

    ``scratch`` is a directory for the copy that is compared. Raises StorageUnavailable.
    """
    async with scratch_directory(scratch) as copies:
        with suppress(MissingFile, StorageUnavailable):  # if the storage is away, it cannot store either
            await fetch(storage, key, copies / "stored", sha256, final=True)
            return
    await storage.put_final(key, path)
