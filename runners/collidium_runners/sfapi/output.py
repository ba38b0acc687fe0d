"""Downloads the output of a job, file by file and in pieces: the API serves small files only."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from collidium.contracts.runner import JobProgress, RunnerUnavailable
from collidium_runners.command import job_progress, parse_progress
from collidium_runners.outputs import (
    LONGEST_MANIFEST,
    MANIFEST,
    Shard,
    parse_manifest,
    require_room,
    shards,
    with_checksums,
)
from collidium_runners.sfapi.client import Client

if TYPE_CHECKING:
    from collidium_runners.sfapi.connection import Machine

#: Bytes that are asked for at once, and so held in memory for each file that is fetched.
PIECE: Final = 4 * 1024**2
#: How many files are fetched at once.
FILES_AT_ONCE: Final = 4
#: A file of so many blocks, of 512 bytes, is no progress: jobs may write anything.
_PROGRESS_BLOCKS: Final = 9

T = TypeVar("T")
U = TypeVar("U")


class Output:
    """The files that the parts of one job wrote below ``source`` on the machine."""

    def __init__(
        self, client: Client, machine: Machine, name: str, source: PurePosixPath, parts: int
    ) -> None:
        self._client = client
        self._machine = machine
        self._name = name
        self._source = source
        self._parts = parts

    async def finished(self) -> list[bool]:
        """Whether the output of each part is whole."""
        folders = await self._machine.folders(self._source)
        return [str(part) in folders for part in range(self._parts)]

    async def fetch(self, parts: range, directory: Path, max_bytes: int) -> list[Path]:
        """Write tables of parts below ``directory``; what is there already, and whole, is not fetched again.

        Raises RunnerRefused when something is missing, or has more than ``max_bytes`` with the others.
        """
        # A link in the place of a part's folder could lead anywhere on the machine.
        folders = await self._machine.folders(self._source)
        listed = await _few_at_once(partial(self._sizes, folders), parts)
        sizes = dict(zip(parts, listed, strict=True))
        wanted = shards(sizes)
        require_room(((sizes[shard.part] or {})[shard.file] for shard in wanted), max_bytes)
        manifests = await _few_at_once(self._manifest, sizes.items())
        wanted = with_checksums(wanted, dict(zip(parts, manifests, strict=True)))
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)

        async def fetch(shard: Shard) -> Path:
            target = directory / shard.name
            size = (sizes[shard.part] or {})[shard.file]
            if await asyncio.to_thread(_size, target) != size:
                await self._write(self._source / str(shard.part) / shard.file, size, target)
            try:
                await asyncio.to_thread(shard.check, target)
            except RunnerUnavailable:
                await asyncio.to_thread(target.unlink)  # the next attempt fetches it again
                raise
            return target

        written = await _few_at_once(fetch, wanted)
        if any(size > PIECE for listing in listed for size in (listing or {}).values()):
            await self._machine.run("rm", "-rf", str(self._pieces_directory))
        return written

    async def progress(self) -> JobProgress | None:
        """How far the job is, by what its parts wrote; raises RunnerUnavailable before any has begun."""
        folder = str(self._source / "progress")
        small = ("-maxdepth", "1", "-name", "*.json", "-type", "f", "-size", f"-{_PROGRESS_BLOCKS}")
        lines = await self._machine.run("find", folder, *small, "-exec", "grep", "-h", ".", "{}", "+")
        return job_progress(map(parse_progress, lines.splitlines()), self._parts)

    async def _sizes(self, folders: Collection[str], part: int) -> dict[str, int] | None:
        if str(part) not in folders:
            return None
        return await self._machine.files(self._source / str(part))

    async def _manifest(self, listed: tuple[int, Mapping[str, int] | None]) -> dict[str, str]:
        part, sizes = listed
        if not 0 < (sizes or {}).get(MANIFEST, 0) <= LONGEST_MANIFEST:
            return {}
        text = await self._download(self._source / str(part) / MANIFEST)
        return parse_manifest(text.decode(errors="replace"))

    async def _write(self, source: PurePosixPath, size: int, target: Path) -> None:
        unfinished = target.with_name(f".{target.name}.unfinished")
        await asyncio.to_thread(unfinished.unlink, missing_ok=True)
        left = size
        async for piece in self._content(source, size):
            left -= len(piece)
            if left < 0:
                break
            await asyncio.to_thread(_append, unfinished, piece)
        if left < 0 or await asyncio.to_thread(_size, unfinished) != size:
            raise RunnerUnavailable(f"{source.name} arrived incomplete")
        await asyncio.to_thread(unfinished.replace, target)

    async def _content(self, source: PurePosixPath, size: int) -> AsyncIterator[bytes]:
        if size <= PIECE:
            yield await self._download(source)
            return
        prefix = self._pieces_directory / f"{source.parent.name}.{source.name}."
        await self._machine.run("mkdir", "-p", "-m", "700", str(self._pieces_directory))
        await self._machine.run("split", "-d", "-a", "6", "-b", str(PIECE), str(source), str(prefix))
        for number in range(-(-size // PIECE)):
            yield await self._download(prefix.with_name(f"{prefix.name}{number:06d}"))

    @property
    def _pieces_directory(self) -> PurePosixPath:
        return self._source / "pieces"

    async def _download(self, path: PurePosixPath) -> bytes:
        answer = await self._client.get(f"utilities/download/{self._name}/{path}", {"binary": True})
        try:
            return await asyncio.to_thread(_content_of, answer)
        except (ValueError, KeyError, TypeError):
            raise RunnerUnavailable(f"the batch API did not hand out {path.name}") from None


def _content_of(answer: httpx.Response) -> bytes:
    data = answer.json()
    if data["status"] != "OK" or not data["is_binary"]:
        raise ValueError
    return base64.b64decode(data["file"], validate=True)


def _append(path: Path, content: bytes) -> None:
    # Opened and closed in one thread: a call that is cancelled meanwhile leaves no file open.
    with path.open("ab") as file:
        file.write(content)


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


async def _few_at_once(work: Callable[[T], Awaitable[U]], items: Iterable[T]) -> list[U]:
    turns = asyncio.Semaphore(FILES_AT_ONCE)

    async def one(item: T) -> U:
        async with turns:
            return await work(item)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        # If one failed, the others are cancelled; their files would collide with the next attempt.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
