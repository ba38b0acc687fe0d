"""The contract of a runner, which simulates events: a mock, a container, a batch system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Final

from collidium.order import Order

#: The variable that names a file in which the command of a job writes its :class:`JobProgress`, as JSON:
#: lines in the log would push out the reason of a failure.
PROGRESS_FILE: Final = "COLLIDIUM_PROGRESS_FILE"
#: Concurrent polls of the default :meth:`Runner.poll_many`.
POLLS_AT_ONCE: Final = 16


class JobState(StrEnum):
    """The states of a job. ``unknown``: its state is not known; keep following it.

    Examples
    --------
    >>> [state.value for state in JobState if state.has_ended]
    ['completed', 'failed', 'cancelled']
    """

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Job:
    """Events to simulate. ``request_id`` names the job everywhere, so that submitting is idempotent.

    A runner may cut it into parts, all with its seed: the handle, the status and the output are those of all.
    """

    request_id: str
    order: Order
    #: The expected time on one node, in seconds, from which time limits are derived.
    node_seconds: float

    # What runners of 0.4.0 read; later fields are in the order alone.

    @property
    def channel(self) -> str:
        """That of the order, as the properties below."""
        return self.order.channel

    @property
    def events(self) -> int:
        return self.order.events

    @property
    def pileup(self) -> int:
        return self.order.pileup

    @property
    def seed(self) -> int:
        return self.order.seed

    @property
    def vary(self) -> str:
        return self.order.vary


def part_events(events: int, part: int, parts: int) -> range:
    """Return the events of one of the parts that a job is cut into; parts differ by one event at most.

    Examples
    --------
    >>> [part_events(7, part, 3) for part in range(3)]
    [range(0, 3), range(3, 5), range(5, 7)]
    """
    shortest, longer = divmod(events, parts)
    first = part * shortest + min(part, longer)
    return range(first, first + shortest + (part < longer))


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a job."""

    state: JobState
    #: Node-hours used so far; None if unknown.
    node_hours: Decimal | None = None
    #: The reason of the state, for users: one line, without secrets.
    reason: str | None = None
    #: Parts of a running job that have completed, so that :meth:`Runner.finished_parts` is worth a call.
    parts_completed: int = 0


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a running job is."""

    #: The stage that runs, from 1, of how many, and its name for users.
    stage: int
    stages: int
    title: str
    #: What is done of the stage, from 0 to 1.
    fraction: float
    #: Until the stage is done; None if unknown.
    seconds_left: float | None = None


class RunnerError(RuntimeError):
    """A call failed.

    The message is shown to users, so it must not contain paths, settings and hosts. Put what operators need
    into the cause (``raise RunnerUnavailable("…") from error``), which is logged.
    """


class RunnerRefused(RunnerError):
    """The call can never succeed; the message gives the reason, for users."""


class RunnerUnavailable(RunnerError):
    """The runner cannot be reached, or its response is invalid; a retry may work."""


class Runner(ABC):
    """Drives jobs; one long-lived instance per process.

    Handles are stored in the database and outlive the process: any other instance with the same settings, in
    another process or after a restart, must follow, cancel and collect the job. Every method but ``close``
    may raise :class:`RunnerUnavailable` and :class:`RunnerRefused`, and no other error.

    The platform may repeat any call, because the calling process may be killed before it stores the result.
    """

    #: Selects it in the settings.
    name: str
    #: Whether its jobs only change state and have no output.
    is_mock: ClassVar[bool] = False
    #: Whether processes of other machines, with the same settings, can follow its jobs.
    is_shared: bool = True
    #: Seconds between two polls of a job; None: the setting ``PLATFORM_POLL_SECONDS``.
    poll_seconds: float | None = None
    #: Seconds between polls of jobs whose requests users watch, all in one call; 0: twice a second each,
    #: where that costs little. None: no sooner than others.
    watched_poll_seconds: ClassVar[float | None] = None

    def check(self) -> None:  # noqa: B027 -- most need nothing
        """Raise :class:`~collidium.errors.ConfigurationError` where this machine lacks what every job needs.

        Called for the selected runner at the start of every process that follows requests.
        """

    def leftovers(self) -> str:
        """Return which files of ended jobs it cannot delete, and the command that does; empty for none.

        ``collidium doctor`` shows it as advice. Blocks.
        """
        return ""

    @abstractmethod
    async def submit(self, job: Job) -> str:
        """Start a job. Idempotent by request_id.

        Parameters
        ----------
        job : Job

        Returns
        -------
        str
            The handle of the job, at most 200 characters; the same for the same request_id.

        Raises
        ------
        RunnerRefused
            For a job that this runner will never run.
        """

    @abstractmethod
    async def find(self, request_id: str) -> str | None:
        """Return the handle of the job of a request, to stop a job whose handle was never stored.

        Parameters
        ----------
        request_id : str

        Returns
        -------
        str or None
            None if no job was submitted.
        """

    @abstractmethod
    async def poll(self, handle: str) -> JobStatus:
        """Return the current status of a job.

        Parameters
        ----------
        handle : str

        Raises
        ------
        RunnerUnavailable
            If the status is unknown at the moment.
        RunnerRefused
            For an unknown handle.
        """

    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
        """Return the status of many jobs. Override it if one call can poll many jobs.

        Parameters
        ----------
        handles : sequence of str

        Returns
        -------
        mapping of str to JobStatus or RunnerError
            What :meth:`poll` returns or raises for each handle.
        """
        import asyncio  # which every command would pay for

        turns = asyncio.Semaphore(POLLS_AT_ONCE)

        async def ask(handle: str) -> JobStatus | RunnerError:
            async with turns:
                try:
                    return await self.poll(handle)
                except RunnerError as error:
                    return error
                except (SystemExit, KeyboardInterrupt) as error:  # in a task it would end the process
                    raise RuntimeError(f"polling raised {error!r}") from error

        return dict(zip(handles, await asyncio.gather(*map(ask, handles)), strict=True))

    async def progress(self, handle: str) -> JobProgress | None:
        """Return how far a running job is; None where that is unknown.

        Called twice a second while a user watches the request, so it must be quick.

        Parameters
        ----------
        handle : str
            As :meth:`submit` returned it.
        """
        return None

    @abstractmethod
    async def cancel(self, handle: str) -> None:
        """Stop a job; no effect if it has ended or the handle is unknown.

        Parameters
        ----------
        handle : str
            As :meth:`submit` returned it.
        """

    @abstractmethod
    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        """Write the output of a completed job.

        What a job wrote is untrusted: the runner adds up sizes before it writes anything, and stops where a
        file turns out larger.

        Parameters
        ----------
        handle : str
        directory : pathlib.Path
            May contain files of an earlier call, which are kept or replaced, but never written to: the
            storage may keep the files themselves. So may the runner give hard links of what the job wrote.
        max_bytes : int
            Maximum size of all files together.

        Returns
        -------
        list of pathlib.Path
            Parquet tables, ``<table>.parquet`` or shards ``<table>-00000-of-00004.parquet``: one row per
            event, with a column ``event_id`` and list columns. A mock returns no files.

        Raises
        ------
        RunnerRefused
            For an output larger than ``max_bytes``, for an unknown handle, and for a job that has not
            completed.
        """

    async def finished_parts(self, handle: str) -> Sequence[bool]:
        """Return for each part of a job whether its output is whole and can be collected.

        Parts are those of :func:`part_events`. Override it with :meth:`collect_part` for jobs of several
        parts: what is finished is then stored while other parts run.

        Parameters
        ----------
        handle : str

        Returns
        -------
        sequence of bool
            One part that is not finished, unless overridden: it is collected when the job has completed.
        """
        return [False]

    async def collect_part(self, handle: str, part: int, directory: Path, max_bytes: int) -> list[Path]:
        """Write the output of one finished part, as :meth:`collect` does for a job of one part.

        Parameters
        ----------
        handle : str
        part : int
            From 0, in the order of events.
        directory : pathlib.Path
            A directory of this part alone; otherwise as for :meth:`collect`.
        max_bytes : int

        Returns
        -------
        list of pathlib.Path
            Tables with exactly the events of the part.

        Raises
        ------
        RunnerRefused
            As :meth:`collect`, and where the part is not finished.
        """
        return await self.collect(handle, directory, max_bytes)

    @abstractmethod
    async def close(self) -> None:
        """Close connections. Idempotent."""
