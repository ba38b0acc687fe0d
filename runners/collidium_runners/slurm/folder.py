"""A request's folder on the file system that server and compute nodes share.

::

    <directory>/<request_id>/
        parts              the number of parts, written before the job is submitted
        job                the job's id, written once by the first submission
        cancelled          exists if the job is to be cancelled
        status/12_0        the end of array task 0 of job 12 (:mod:`collidium_runners.batch.states`)
        log/12_0           its output
        progress/0.json    the progress of part 0
        0/                 the complete output of part 0

Operators may delete the folders of requests that have ended.
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

    #: Whether the folder exists.
    known: bool
    cancelled: bool = False
    records: dict[int, TaskRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestFolder:
    """The folder of a request. Methods block on the disk, and raise RunnerUnavailable for its errors."""

    path: Path
    #: Whether an operator has chosen the folder above: if it is missing, the file system is not mounted.
    above_is_given: bool = False

    def claim_parts(self, parts: int) -> tuple[int, bool]:
        """Return the number of parts of the job, and whether this call has set it."""
        self._require_above()
        try:
            if not self.above_is_given:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Private, as other users of the cluster see the file system.
            self.path.mkdir(mode=0o700, exist_ok=True)
            settled, new = self._settle("parts", parts)
        except OSError as error:
            raise _unusable(error) from error
        return settled, new

    def claim_job(self, job_id: int) -> int:
        """Return the request's job: this one, unless another was recorded first."""
        try:
            return self._settle("job", job_id)[0]
        except OSError as error:
            raise _unusable(error) from error

    def parts(self) -> int | None:
        """Return the number of parts of the job; None if it was not submitted."""
        self._require_above()
        return self._number("parts")

    def job(self) -> int | None:
        """Return the id of the request's job, None if unknown.

        If the submitting process was killed before it wrote the id, it is in the names of task records.
        """
        written = self._number("job")
        if written is not None:
            return written
        ids = [int(name.partition("_")[0]) for name in self._names("status") if name[0].isdecimal()]
        return min(ids, default=None)

    def mark_cancelled(self) -> None:
        """Record that the job is to be cancelled; do nothing without a folder."""
        try:
            (self.path / "cancelled").touch(mode=0o600)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unusable(error) from error

    def state_after(self, job_id: int) -> FolderState:
        """Return the records of the job."""
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
        """Return for each part whether its output is complete."""
        self._require_above()
        names = frozenset(self._names("."))
        return [str(part) in names for part in range(parts)]

    def progress(self, parts: int) -> list[JobProgress | None]:
        """Return the last reported progress of each part."""
        return [read_progress(self.path / "progress" / f"{part}.json") for part in range(parts)]

    def _require_above(self) -> None:
        if self.above_is_given and not self.path.parent.is_dir():
            missing = ConfigurationError(f"PLATFORM_SLURM_DIRECTORY does not exist: {self.path.parent}")
            raise RunnerUnavailable("the folder of jobs does not exist") from missing

    def _settle(self, name: str, number: int) -> tuple[int, bool]:
        if write_once(self.path / name, str(number)):
            return number, True
        settled = self._number(name)
        if settled is None:
            damaged = ValueError(f"{self.path / name} has no number")
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
