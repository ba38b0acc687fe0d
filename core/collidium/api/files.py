"""A file of the storage backend as an answer, in pieces: memory stays bounded whatever its size."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import BinaryIO, Final

from quart import Response

from collidium.contracts.storage import MissingFile, Storage
from collidium.errors import NotFound
from collidium.files.held import scratch_directory
from collidium.settings import MEBIBYTE

PIECE_BYTES: Final = MEBIBYTE


async def answer_with_file(storage: Storage, key: str, scratch: Path, media_type: str) -> Response:
    """The stored file as a download, by way of a copy below ``scratch``; raises NotFound."""
    async with scratch_directory(scratch) as directory:
        copy = directory / "file"
        try:
            await storage.get(key, copy)
        except MissingFile:
            raise NotFound("the file is not kept any more") from None
        # It loses its name with the directory, and is gone when it is closed, or its process is killed.
        file = await asyncio.to_thread(copy.open, "rb")
        size = (await asyncio.to_thread(copy.stat)).st_size
    response = Response(_Pieces(file), content_type=media_type)
    response.content_length = size
    response.headers.set("Content-Disposition", "attachment", filename=key.rpartition("/")[2])
    return response


class _Pieces:
    """What is in an open file; closed when it was sent, or is not wanted any more."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        if piece := await asyncio.to_thread(self._file.read, PIECE_BYTES):
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._file.close()
