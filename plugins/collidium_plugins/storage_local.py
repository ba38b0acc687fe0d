"""Storage ``local``: files in the data directory."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable, check_key
from collidium.files.durable import sync
from collidium.files.held import HeldFile, sweep
from collidium.hookspecs import hookimpl

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Directory of incomplete files; keys have no upper-case letters.
_INCOMING: Final = "INCOMING"

#: Errors of a disk that is full, broken or not mounted.
_UNAVAILABLE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EACCES}
)


@hookimpl
def collidium_storages(settings: Settings) -> list[Storage]:
    storage = LocalStorage(settings.data_dir / "storage")
    sweep(storage.directory / _INCOMING)
    return [storage]


class LocalStorage(Storage):
    """A file per key, which is complete or absent even after a crash."""

    name = "local"
    is_shared = False

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def put(self, key: str, path: Path) -> None:
        with self._disk_errors():
            await asyncio.to_thread(self._put, self._file(key), path)

    async def get(self, key: str, path: Path) -> None:
        source = self._file(key)
        try:
            with self._disk_errors():
                await asyncio.to_thread(shutil.copyfile, source, path)
        except FileNotFoundError:
            if source.exists():
                raise  # the directory of ``path`` is missing
            raise MissingFile(f"no file is kept under {key!r}") from None

    async def put_final(self, key: str, path: Path) -> None:
        with self._disk_errors():
            await asyncio.to_thread(self._link, self._file(key), path)

    async def get_final(self, key: str, path: Path) -> None:
        try:
            await asyncio.to_thread(path.hardlink_to, self._file(key))
        except OSError:  # it is missing, or on another file system
            await self.get(key, path)

    async def exists(self, key: str) -> bool:
        with self._disk_errors():
            return await asyncio.to_thread(self._file(key).is_file)

    async def delete(self, key: str) -> None:
        with self._disk_errors():
            await asyncio.to_thread(self._file(key).unlink, missing_ok=True)

    async def close(self) -> None:
        """Do nothing: no files are held open."""

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _UNAVAILABLE:
                raise StorageUnavailable(f"{self.directory}: {error.strerror}") from error
            raise

    def _file(self, key: str) -> Path:
        return self.directory / check_key(key)

    def _link(self, target: Path, path: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            target.hardlink_to(path)
        except OSError:  # it exists, or is on another file system
            self._put(target, path)
        else:
            sync(target.parent)

    def _put(self, target: Path, path: Path) -> None:
        copy = HeldFile.create(self.directory / _INCOMING)
        try:
            # Not a link, as ``path`` may be modified later. Some file systems share the blocks.
            shutil.copyfile(path, copy.path)
            copy.move_to(target)
        finally:
            copy.let_go()
