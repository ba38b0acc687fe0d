"""Files by which engine and shepherd communicate, in a folder for each job.

::

    job.json       what is to run, written by the engine
    lock           held by the shepherd as long as it lives
    started.json   the shepherd's process
    ended.json     the end of the pipeline
    log, log.1     the end of what it wrote
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from collidium.files import durable
from collidium_runners.local.processes import Process

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobSpecification:
    """What a shepherd is to run."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    niceness: int
    #: Of each process; 0: no limit.
    memory_bytes: int

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Started:
    """A shepherd at work; ``at`` in seconds since 1970."""

    shepherd: Process
    at: float

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(Process(**data["shepherd"]), data["at"])


@dataclass(frozen=True, slots=True)
class Ended:
    """A pipeline's end; ``at`` in seconds since 1970."""

    exit_code: int
    at: float

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


class Record:
    """The files of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: What the job is called.
        self.name = folder.name
        self.lock = folder / "lock"

    @property
    def specification(self) -> JobSpecification | None:
        return self._read("job.json", JobSpecification.from_json)

    @property
    def started(self) -> Started | None:
        return self._read("started.json", Started.from_json)

    @property
    def ended(self) -> Ended | None:
        return self._read("ended.json", Ended.from_json)

    def write_specification(self, specification: JobSpecification) -> None:
        self._write("job.json", asdict(specification))

    def write_started(self, started: Started) -> None:
        self._write("started.json", asdict(started))

    def write_ended(self, ended: Ended) -> None:
        self._write("ended.json", asdict(ended))

    def _read(self, name: str, meaning: Callable[[dict[str, Any]], T]) -> T | None:
        """None for a missing or damaged file, which must not affect other jobs."""
        try:
            return meaning(json.loads((self.folder / name).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            logger.error("%s is invalid: %r", self.folder / name, error)
            return None

    def _write(self, name: str, data: dict[str, Any]) -> None:
        """Whole or not at all, and safe on disk afterwards."""
        durable.replace(self.folder / name, json.dumps(data))
