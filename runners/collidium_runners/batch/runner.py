"""The base of runners of array jobs, which follow many jobs at once by their handles."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from weakref import WeakValueDictionary

from collidium.contracts.runner import JobStatus, Runner, RunnerError, RunnerRefused, RunnerUnavailable
from collidium_runners.command import REQUEST_ID

_HANDLE: Final = re.compile(rf"([1-9]\d{{0,17}})\.([1-9]\d{{0,5}})\.({REQUEST_ID.pattern})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Handle:
    """An array job: its id in the batch system, its parts, and the request that it is for."""

    job_id: int
    parts: int
    request_id: str

    def __str__(self) -> str:
        return f"{self.job_id}.{self.parts}.{self.request_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a handle; raises RunnerRefused for any other text."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise RunnerRefused(f"there is no job {text[:200]!r}")
        return cls(int(match[1]), int(match[2]), match[3])


#: Slurm's messages for a job that it will never accept; the last is for a script that is too long.
#: Operators can fix other errors, such as an unknown partition.
_REFUSALS: Final = (
    "Requested time limit is invalid",
    "Invalid job array specification",
    "Pathname of a file",
)


def submission_error(message: str) -> RunnerError:
    """The error for a rejected job; other messages of Slurm are for operators."""
    final = next((words for words in _REFUSALS if words in message), None)
    if final is not None:
        return RunnerRefused(f"the batch system rejected the job: {final}")
    return RunnerUnavailable("the batch system rejected the job; the platform's operators see why")


class BatchRunner(Runner):
    """Its handles are those of :class:`~collidium_runners.batch.runner.Handle`."""

    def __init__(self) -> None:
        self._submitting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def submitting(self, request_id: str) -> asyncio.Lock:
        """Held while a request is submitted: of two attempts of this process the second finds the job."""
        return self._submitting.setdefault(request_id, asyncio.Lock())

    @abstractmethod
    async def statuses(self, handles: Collection[Handle]) -> Mapping[Handle, JobStatus | RunnerError]:
        """The status of each job, at least one; raises RunnerUnavailable where that holds for them all."""

    @abstractmethod
    async def stop(self, handle: Handle) -> None:
        """Stop the job's compute; nothing happens when it has ended."""

    async def poll(self, handle: str) -> JobStatus:
        status = (await self.poll_many([handle]))[handle]
        if isinstance(status, RunnerError):
            raise status
        return status

    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
        answers: dict[str, JobStatus | RunnerError] = {}
        known: dict[str, Handle] = {}
        for text in handles:
            try:
                known[text] = Handle.parse(text)
            except RunnerRefused as error:
                answers[text] = error
        if known:
            try:
                statuses = await self.statuses(frozenset(known.values()))
            except RunnerUnavailable as error:
                return answers | dict.fromkeys(known, error)
            answers |= {text: statuses[handle] for text, handle in known.items()}
        return answers

    @abstractmethod
    async def fetch(self, handle: Handle, parts: range, directory: Path, max_bytes: int) -> list[Path]:
        """Write the output of finished parts, as :meth:`collect` does; raises RunnerRefused for others."""

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        known = Handle.parse(handle)
        return await self.fetch(known, range(known.parts), directory, max_bytes)

    async def collect_part(self, handle: str, part: int, directory: Path, max_bytes: int) -> list[Path]:
        return await self.fetch(Handle.parse(handle), range(part, part + 1), directory, max_bytes)

    async def cancel(self, handle: str) -> None:
        try:
            known = Handle.parse(handle)
        except RunnerRefused:
            return
        await self.stop(known)
