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

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collidium.contracts.runner import JobProgress, RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium.files import untrusted
from collidium.files.durable import write_once
from collidium_runners.batch.states import TaskRecord
from collidium_runners.command import read_progress

#: Maximum size of a file with a number or a record.
_LONGEST: Final = 4096
#: Maximum digits of a job's id, and maximum number of parts: a job can write both files.
_DIGITS: Final = 18
_MOST_PARTS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FolderState:
    """The state of a job in its request's folder."""

    #: Whether the folder exists.
    known: bool
    cancelled: bool = False
    records: dict[int, TaskRecord] = field(default_factory=dict)
    #: The parts with a record whose output is complete.
    whole: frozenset[int] = frozenset()

    def has_succeeded(self, part: int) -> bool:
        """Whether the last run of a part recorded success and its output is complete."""
        return part in self.whole and self.records[part].exit_code == 0


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
        names = self._names("status")
        if names is None:
            raise RunnerUnavailable("the folder of the job has too many files") from _too_many(self.path)
        owners = (name.partition("_")[0] for name in names)
        ids = (owner for owner in owners if owner.isascii() and owner.isdecimal() and len(owner) <= _DIGITS)
        return min(map(int, ids), default=None)

    def mark_cancelled(self) -> None:
        """Record that the job is to be cancelled; do nothing without a folder."""
        try:
            (self.path / "cancelled").touch(mode=0o600)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unusable(error) from error

    def state_after(self, job_id: int, parts: int) -> FolderState:
        """Return the records of the job's parts. What a job has left in place of a record is ignored."""
        self._require_above()
        listed = self._names("status")
        names = None if listed is None else frozenset(listed)
        records = {}
        for index in range(parts):
            name = f"{job_id}_{index}"
            if names is None or name in names:
                record = self._record(name)
                if record is not None:
                    records[index] = record
        whole = frozenset(index for index in records if (self.path / str(index)).is_dir())
        return FolderState(self.path.is_dir(), (self.path / "cancelled").exists(), records, whole)

    def finished(self, parts: int) -> list[bool]:
        """Return for each part whether its output is complete."""
        self._require_above()
        listed = self._names(".")
        if listed is None:
            return [(self.path / str(part)).is_dir() for part in range(parts)]
        names = frozenset(listed)
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
        if text is None or not text.isdigit() or len(text) > _DIGITS:
            return None
        number = int(text)
        return None if name == "parts" and number > _MOST_PARTS else number

    def _record(self, name: str) -> TaskRecord | None:
        try:
            return TaskRecord.parse(untrusted.read(self.path / "status" / name, _LONGEST))
        except (FileNotFoundError, untrusted.NotRegular):
            return None
        except OSError as error:
            raise _unusable(error) from error

    def _read(self, name: str) -> bytes | None:
        try:
            return untrusted.read(self.path / name, _LONGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(error) from error

    def _names(self, name: str) -> list[str] | None:
        """Return the names in a folder, none if it is missing; None if there are too many to read."""
        try:
            return untrusted.names(self.path / name)
        except FileNotFoundError:
            return []
        except untrusted.TooManyNames:
            return None
        except OSError as error:
            if isinstance(error, NotADirectoryError) and self.path.is_dir():
                return []  # the job has left something else there
            raise _unusable(error) from error


def _unusable(error: OSError) -> RunnerUnavailable:
    return RunnerUnavailable(f"the folder of jobs cannot be used: {error.strerror}")


def _too_many(path: Path) -> OSError:
    return untrusted.TooManyNames(errno.EFBIG, "has too many names", str(path / "status"))
