"""What runners of array jobs have in common: they follow jobs by handles, many at once."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from weakref import WeakValueDictionary

from collidium.contracts.runner import JobStatus, Runner, RunnerError, RunnerRefused, RunnerUnavailable
from collidium_runners.batch.handles import Handle


class BatchRunner(Runner):
    """Its handles are those of :class:`~collidium_runners.batch.handles.Handle`."""

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

    async def cancel(self, handle: str) -> None:
        try:
            known = Handle.parse(handle)
        except RunnerRefused:
            return
        await self.stop(known)
