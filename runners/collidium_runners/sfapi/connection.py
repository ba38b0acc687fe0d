"""The one connection of a runner, and operations of the library on the machine; needs the library."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from typing import Final

from sfapi_client import SfApiError
from sfapi_client.compute import AsyncCompute

from collidium.contracts.runner import RunnerUnavailable
from collidium_runners.batch.states import Handle, submission_error
from collidium_runners.sfapi.client import NOT_FOUND, BadAnswer, Client
from collidium_runners.sfapi.output import Output
from collidium_runners.sfapi.queue import Queue
from collidium_runners.sfapi.runner import Site

#: What the library raises when an answer is not what it expects: it reads fields without looking.
_NONSENSE: Final = (ValueError, KeyError, AttributeError, TypeError, IndexError)
_NO_SUCH: Final = "No such file or directory"


class Machine:
    """One machine; ``seconds`` bound each of these, which take several calls."""

    def __init__(self, client: Client, name: str, seconds: float) -> None:
        self._client = client
        self._name = name
        self._seconds = seconds
        self._compute: AsyncCompute | None = None

    async def submit(self, script: str) -> int:
        """Hand a batch script over and return the job's id.

        Raises RunnerRefused for a script that will never be taken, and RunnerUnavailable when it was not
        taken, or that is unknown.
        """
        async with self._understood("a submission"):
            try:
                job = await (await self._connected()).submit_job(script)
                return int(job.jobid)
            except SfApiError as error:
                raise submission_error(str(error.message)) from error

    async def run(self, *words: str) -> str:
        """Run a command on a login node, return its output; raises RunnerUnavailable when it fails."""
        async with self._understood("a command"):
            try:
                return str(await (await self._connected()).run(shlex.join(words)))
            except SfApiError as error:
                raise RunnerUnavailable(f"{words[0]} failed on the machine") from error

    async def files(self, directory: PurePosixPath) -> dict[str, int] | None:
        """The sizes of the files in a directory by their names; None when there is none."""
        listed = await self._listing(directory)
        return None if listed is None else {name: size for name, kind, size in listed if kind == "-"}

    async def folders(self, directory: PurePosixPath) -> set[str]:
        """The names of the folders in a directory, without links to folders."""
        return {name for name, kind, _ in await self._listing(directory) or () if kind == "d"}

    async def _listing(self, directory: PurePosixPath) -> list[tuple[str, str, int]] | None:
        """Name, kind (as ls has it, "l" for a link) and size of what is in a directory."""
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
            raise RunnerUnavailable(f"the batch API answered {what} with nonsense") from None


class Connection:
    """Opens nothing before it is used; ``site`` is complete."""

    def __init__(self, site: Site) -> None:
        settings = site.settings
        self._directory = site.directory
        self._name = settings.sfapi_machine
        self.client = Client(
            settings.sfapi_client_id,
            site.key(),
            settings.sfapi_url.rstrip("/"),
            settings.sfapi_token_url,
            settings.sfapi_calls_per_second,
            settings.sfapi_call_seconds,
        )
        self.machine = Machine(self.client, self._name, settings.sfapi_submit_seconds)
        self.queue = Queue(self.client, self._name)

    def output(self, handle: Handle) -> Output:
        """The files of a job."""
        source = self._directory / handle.request_id
        return Output(self.client, self.machine, self._name, source, handle.parts)

    async def stop(self, job_id: int) -> None:
        """Have a job end; nothing happens when there is none."""
        try:
            answer = await self.client.delete(f"compute/jobs/{self._name}/{job_id}")
            answer.json()
        except BadAnswer as error:
            if error.status != NOT_FOUND:
                raise
        except ValueError:
            raise RunnerUnavailable("the batch API answered a cancellation with nonsense") from None

    async def close(self) -> None:
        await self.client.close()
