"""A request's folder on the file system that server and compute nodes share.

::

    <directory>/<request_id>/
        parts              into how many parts the job is cut: written before the job is handed to Slurm
        job                the job's id: written once, by the first submission
        cancelled          it is to be stopped
        status/12_0        the end of array task 0 of job 12 (:mod:`collidium_runners.batch.states`)
        log/12_0           what it printed
        progress/0.json    how far part 0 is
        0/                 the output of part 0, whole

An operator may delete the folder of a request that has ended.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from collidium.contracts.runner import JobProgress, RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium.files.durable import write_once
from collidium_runners.batch.states import TaskRecord
from collidium_runners.command import read_progress


@dataclass(frozen=True, slots=True)
class FolderState:
    """The state of a job in its request's folder."""

    #: Whether there is a folder at all.
    known: bool
    cancelled: bool = False
    records: dict[int, TaskRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestFolder:
    """Methods block on the disk and raise RunnerUnavailable when it does not answer as it should."""

    path: Path
    #: Whether the folder above must be there: if an operator named it and it is not, nothing was mounted.
    above_is_given: bool = False

    def claim_parts(self, parts: int) -> tuple[int, bool]:
        """Into how many parts the job is cut, and whether that was settled by this call."""
        self._require_above()
        try:
            if not self.above_is_given:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Others of the cluster see the file system, and the request may be private.
            self.path.mkdir(mode=0o700, exist_ok=True)
            settled, new = self._settle("parts", parts)
        except OSError as error:
            raise _unusable(error) from error
        return settled, new

    def claim_job(self, job_id: int) -> int:
        """The request's one job: this one, unless another was first."""
        try:
            return self._settle("job", job_id)[0]
        except OSError as error:
            raise _unusable(error) from error

    def parts(self) -> int | None:
        """Into how many parts the job is cut; None if it was not submitted."""
        self._require_above()
        return self._number("parts")

    def job(self) -> int | None:
        """The id of the request's job; None when none is known to have been queued.

        Records of tasks contain it too: the submitting process may have been killed before it stored it.
        """
        written = self._number("job")
        if written is not None:
            return written
        ids = [int(name.partition("_")[0]) for name in self._names("status") if name[0].isdecimal()]
        return min(ids, default=None)

    def mark_cancelled(self) -> None:
        """Remember that the job was to be stopped; nothing happens without a folder."""
        try:
            (self.path / "cancelled").touch(mode=0o600)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unusable(error) from error

    def state_after(self, job_id: int) -> FolderState:
        """The records of the job."""
        self._require_above()
        records = {}
        for name in self._names("status"):
            owner, _, index = name.partition("_")
            if owner == str(job_id) and index.isdecimal():
                record = TaskRecord.parse(self._read(f"status/{name}") or b"")
                if record is not None:
                    records[int(index)] = record
        return FolderState(self.path.is_dir(), (self.path / "cancelled").exists(), records)

    def finished(self, parts: int) -> list[bool]:
        """Whether the output of each of so many parts is whole."""
        self._require_above()
        names = frozenset(self._names("."))
        return [str(part) in names for part in range(parts)]

    def progress(self, parts: int) -> list[JobProgress | None]:
        """What each of so many parts last wrote of its progress."""
        return [read_progress(self.path / "progress" / f"{part}.json") for part in range(parts)]

    def _require_above(self) -> None:
        if self.above_is_given and not self.path.parent.is_dir():
            missing = ConfigurationError(f"PLATFORM_SLURM_DIRECTORY is not there: {self.path.parent}")
            raise RunnerUnavailable("the folder of jobs is not there") from missing

    def _settle(self, name: str, number: int) -> tuple[int, bool]:
        if write_once(self.path / name, str(number)):
            return number, True
        settled = self._number(name)
        if settled is None:
            damaged = ValueError(f"{self.path / name} holds no number")
            raise RunnerUnavailable("the record of the job is damaged") from damaged
        return settled, False

    def _number(self, name: str) -> int | None:
        text = self._read(name)
        return int(text) if text is not None and text.isdigit() else None

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(error) from error

    def _names(self, name: str) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self.path / name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable(error) from error


def _unusable(error: OSError) -> RunnerUnavailable:
    return RunnerUnavailable(f"the folder of jobs cannot be used: {error.strerror}")
