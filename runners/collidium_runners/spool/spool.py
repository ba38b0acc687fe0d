"""The records of the jobs of this machine, a file for each. Everything here blocks.

::

    waiting/<request_id>.json   the job has no slot yet
    started/<request_id>.json   the job has a slot: it runs, or will be started or removed
    ended/<request_id>.json     only its output is left; kept so that a request never runs twice
    lock                        locked by processes that change any of these

A job only moves forwards: its new file is written before the old one is deleted, so that readers who look in
that order always find it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from collidium.contracts.runner import Job, JobStatus, RunnerUnavailable
from collidium.files import durable, untrusted
from collidium.files.held import locked
from collidium_runners.command import REQUEST_ID, job_name

logger = logging.getLogger(__name__)

#: Maximum size of a record, with the last lines of a log.
_LONGEST: Final = 1024**2
_FOLDERS: Final = ("waiting", "started", "ended")

#: Why a job is being stopped.
CANCELLED: Final = "cancelled"
TOO_LONG: Final = "too long"


@dataclass(frozen=True, slots=True)
class SpooledJob:
    """A job and its state."""

    job: Job
    #: The program of its engine.
    engine: str
    submitted_at: float
    #: Whether it has one of the slots for running jobs.
    has_slot: bool = False
    #: Whether its engine has started it.
    launched: bool = False
    #: Why it is being stopped, if it is.
    stop: str | None = None
    #: Its final status.
    status: JobStatus | None = None
    ended_at: float = 0.0
    #: The last lines of its log.
    log: tuple[str, ...] = ()

    @property
    def request_id(self) -> str:
        return self.job.request_id

    @property
    def name(self) -> str:
        """Its name in the engine."""
        return job_name(self.request_id)

    @property
    def folder(self) -> str:
        """The folder of its file."""
        return "started" if self.has_slot else "ended" if self.status else "waiting"


class Spool:
    """The jobs below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the spool against all other processes and threads."""
        for folder in _FOLDERS:
            (self.directory / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.directory / "lock"):
            yield

    def find(self, request_id: str) -> SpooledJob | None:
        """Return the job of a request, None if there is none."""
        if not REQUEST_ID.fullmatch(request_id):
            return None
        entries = (self._read(self._file(folder, request_id)) for folder in _FOLDERS)
        return next((entry for entry in entries if entry), None)

    def waiting(self) -> list[SpooledJob]:
        """Return the jobs without a slot, oldest first. The caller holds the lock."""
        return self._all("waiting", ("started", "ended"))

    def started(self) -> list[SpooledJob]:
        """Return the jobs with a slot, oldest first. The caller holds the lock."""
        return self._all("started", ("ended",))

    def put(self, entry: SpooledJob) -> SpooledJob:
        """Write the record of a job durably. The caller holds the lock."""
        file = self._file(entry.folder, entry.request_id)
        durable.replace(file, msgspec.json.encode(entry).decode())
        for folder in _FOLDERS[: _FOLDERS.index(entry.folder)]:
            self._file(folder, entry.request_id).unlink(missing_ok=True)
        return entry

    def change(self, entry: SpooledJob, **changes: Any) -> SpooledJob:
        """Write the changed record of a job and return it."""
        return self.put(replace(entry, **changes))

    def _all(self, folder: str, later: tuple[str, ...]) -> list[SpooledJob]:
        entries = []
        for file in (self.directory / folder).glob("*.json"):
            # A process that was killed between the two steps of a move has left both files.
            if any(self._file(other, file.stem).exists() for other in later):
                file.unlink()
            elif entry := self._read_if_sound(file):
                entries.append(entry)
        return sorted(entries, key=lambda entry: (entry.submitted_at, entry.request_id))

    def _read_if_sound(self, file: Path) -> SpooledJob | None:
        """Return a job, None if its record is damaged, which must not affect other jobs."""
        try:
            return self._read(file)
        except RunnerUnavailable as error:
            logger.error("%s", error.__cause__)
            return None

    def _file(self, folder: str, request_id: str) -> Path:
        return self.directory / folder / f"{request_id}.json"

    def _read(self, file: Path) -> SpooledJob | None:
        try:
            return _decoded(untrusted.read(file, _LONGEST))
        except FileNotFoundError:
            return None
        except (untrusted.NotRegular, ValueError, LookupError, TypeError, RecursionError) as error:
            damaged = ValueError(f"{file} is not the record of a job: {error!r}")
            raise RunnerUnavailable("the record of the job is damaged") from damaged


def _decoded(record: bytes) -> SpooledJob:
    """Read a record. Those of 0.4.0 have the fields of the order among those of the job."""
    entry = msgspec.json.decode(record)
    job = entry["job"]
    return msgspec.convert(entry | {"job": {"order": job} | job}, SpooledJob)
