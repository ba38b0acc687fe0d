"""Storage ``local``: files below the data directory of this machine."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable, check_key
from collidium.hookspecs import hookimpl

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Where files are written before they count; no key leads there, as keys have no upper-case letters.
_INCOMING: Final = "INCOMING"

#: What a disk says that is full, broken, or no longer mounted.
_AWAY: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EACCES}
)


@hookimpl
def collidium_storages(settings: Settings) -> list[Storage]:
    return [LocalStorage(settings.data_dir / "storage")]


class LocalStorage(Storage):
    """A file per key; whole or absent, also after a crash."""

    name = "local"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def put(self, key: str, path: Path) -> None:
        try:
            await asyncio.to_thread(self._put, self._file(key), path)
        except OSError as error:
            if error.errno in _AWAY:
                raise StorageUnavailable(f"{self.directory}: {error.strerror}") from error
            raise

    async def get(self, key: str, path: Path) -> None:
        source = self._file(key)
        try:
            await asyncio.to_thread(shutil.copyfile, source, path)
        except FileNotFoundError:
            if source.exists():
                raise  # it is the place for the copy that is missing
            raise MissingFile(f"no file is kept under {key!r}") from None

    async def exists(self, key: str) -> bool:
        return await asyncio.to_thread(self._file(key).is_file)

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._file(key).unlink, missing_ok=True)

    async def close(self) -> None:
        """Nothing is held open."""

    def _file(self, key: str) -> Path:
        return self.directory / check_key(key)

    def _put(self, target: Path, path: Path) -> None:
        incoming = self.directory / _INCOMING
        incoming.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = incoming / uuid.uuid4().hex
        try:
            # A copy, not a link: whoever owns ``path`` may write to it again. The kernel shares the blocks
            # where the file system can.
            shutil.copyfile(path, copy)
            _to_disk(copy)
            copy.replace(target)
            _to_disk(target.parent)
        finally:
            copy.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    """Wait until a file, or a directory's names, would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
