"""The connection of the runner: operations on the machine through the library, and downloads of output.

Importing this module needs ``sfapi_client``. The API serves small files only, so large files are split on the
machine and downloaded in chunks.
"""

from __future__ import annotations

import asyncio
import base64
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

import httpx
from sfapi_client import SfApiError
from sfapi_client.compute import AsyncCompute

from collidium.contracts.runner import JobProgress, RunnerUnavailable
from collidium_runners.batch.states import Handle, submission_error
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
from collidium_runners.sfapi.client import NOT_FOUND, ApiClient, BadAnswer
from collidium_runners.sfapi.queue import QueuedJobs
from collidium_runners.sfapi.runner import Site

#: Size of a chunk in bytes, which is in memory for each file that is being downloaded.
PIECE: Final = 4 * 1024**2
#: Maximum number of concurrent downloads.
FILES_AT_ONCE: Final = 4
#: Progress files with this many blocks of 512 bytes are ignored: jobs may write anything.
_PROGRESS_BLOCKS: Final = 9

T = TypeVar("T")
U = TypeVar("U")

#: Errors of the library for unexpected responses, which it does not validate.
_NONSENSE: Final = (ValueError, KeyError, AttributeError, TypeError, IndexError)
_NO_SUCH: Final = "No such file or directory"


class Output:
    """The files that the parts of one job wrote below ``source`` on the machine."""

    def __init__(
        self, client: ApiClient, machine: Machine, name: str, source: PurePosixPath, parts: int
    ) -> None:
        self._client = client
        self._machine = machine
        self._name = name
        self._source = source
        self._parts = parts

    async def finished(self) -> list[bool]:
        """Return for each part whether its output is complete."""
        folders = await self._machine.folders(self._source)
        return [str(part) in folders for part in range(self._parts)]

    async def fetch(self, parts: range, directory: Path, max_bytes: int) -> list[Path]:
        """Download the tables of parts to ``directory``; files that are complete there are kept.

        Raises RunnerRefused if a table is missing or the output has more than ``max_bytes``.
        """
        # Only real folders: a link in place of a part's folder could lead anywhere on the machine.
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
        """Return the progress that the parts report. Raises RunnerUnavailable before any has started."""
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
    # Opened and closed in one thread, so that a cancelled call leaves no file open.
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
        # If one fails, cancel the others, whose files would collide with the next attempt.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Machine:
    """Operations on one machine, each of several calls and limited to ``seconds``."""

    def __init__(self, client: ApiClient, name: str, seconds: float) -> None:
        self._client = client
        self._name = name
        self._seconds = seconds
        self._compute: AsyncCompute | None = None

    async def submit(self, script: str) -> int:
        """Submit a batch script and return the job's id.

        Raises RunnerRefused if the script will never be accepted, and RunnerUnavailable if it was not
        accepted or the outcome is unknown.
        """
        async with self._understood("a submission"):
            try:
                job = await (await self._connected()).submit_job(script)
                return int(job.jobid)
            except SfApiError as error:
                raise submission_error(str(error.message)) from error

    async def run(self, *words: str) -> str:
        """Run a command on a login node and return its output. Raises RunnerUnavailable if it fails."""
        async with self._understood("a command"):
            try:
                return str(await (await self._connected()).run(shlex.join(words)))
            except SfApiError as error:
                raise RunnerUnavailable(f"{words[0]} failed on the machine") from error

    async def files(self, directory: PurePosixPath) -> dict[str, int] | None:
        """Return the sizes of the files in a directory by name; None if there is no directory."""
        listed = await self._listing(directory)
        return None if listed is None else {name: size for name, kind, size in listed if kind == "-"}

    async def folders(self, directory: PurePosixPath) -> set[str]:
        """Return the names of the folders in a directory, without links."""
        return {name for name, kind, _ in await self._listing(directory) or () if kind == "d"}

    async def _listing(self, directory: PurePosixPath) -> list[tuple[str, str, int]] | None:
        """Return name, type (as in ls, "l" for a link) and size of each entry of a directory."""
        async with self._understood("a listing"):
            try:
                listed = await (await self._connected()).ls(str(directory))
            except SfApiError as error:
                if _NO_SUCH in str(error.message):
                    return None
                raise RunnerUnavailable("a directory cannot be listed on the machine") from error
            return [(entry.name, entry.perms[0], int(entry.size)) for entry in listed]

    async def _connected(self) -> AsyncCompute:
        if self._compute is None:
            self._compute = await self._client.compute(self._name)
        return self._compute

    @asynccontextmanager
    async def _understood(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError:
            raise RunnerUnavailable(f"{what} took the batch API longer than {self._seconds:g} s") from None
        except _NONSENSE:
            raise RunnerUnavailable(f"the batch API's response to {what} is invalid") from None


class ApiConnection:
    """Client, machine and queue of a complete ``site``. Connects when first used."""

    def __init__(self, site: Site) -> None:
        settings = site.settings
        self._directory = site.directory
        self._name = settings.sfapi_machine
        self.client = ApiClient(
            settings.sfapi_client_id,
            site.key(),
            settings.sfapi_url.rstrip("/"),
            settings.sfapi_token_url,
            settings.sfapi_calls_per_second,
            settings.sfapi_call_seconds,
        )
        self.machine = Machine(self.client, self._name, settings.sfapi_submit_seconds)
        self.queue = QueuedJobs(self.client, self._name)

    def output(self, handle: Handle) -> Output:
        """Return the output of a job."""
        source = self._directory / handle.request_id
        return Output(self.client, self.machine, self._name, source, handle.parts)

    async def stop(self, job_id: int) -> None:
        """Cancel a job; do nothing if it does not exist."""
        try:
            response = await self.client.delete(f"compute/jobs/{self._name}/{job_id}")
            response.json()
        except BadAnswer as error:
            if error.status != NOT_FOUND:
                raise
        except ValueError:
            raise RunnerUnavailable("the batch API's response to a cancellation is invalid") from None

    async def close(self) -> None:
        await self.client.close()
