"""The order that a stage processes, its chunks of events, and the base classes of phases."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa

from collidium.order import NOMINAL, Variation
from collidium_plugins.acts_pipeline import VERSION, files
from collidium_plugins.acts_pipeline.files import writing

_ORDER: Final = "order.json"
#: Roughly the minimum number of chunks of a run, so that all processes stay busy.
_MIN_CHUNKS: Final = 16
_MAX_EVENTS_PER_CHUNK: Final = 50


class StageError(RuntimeError):
    """A stage failed; the message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class StageOrder:
    """The events to produce and the working directory."""

    channel: str
    events: int
    pileup: int
    seed: int
    first_event: int
    work: Path
    #: Variation of the detector. Random numbers do not depend on it, so varied and nominal events correspond.
    variation: Variation = NOMINAL
    #: SHA-256 of the Les Houches file with the hard processes; empty without one.
    lhe: str = ""

    def chunks(self) -> list[range]:
        """Return the event ids of each chunk. Chunks are units of work; events do not depend on them."""
        maximum = max(1, _MAX_EVENTS_PER_CHUNK // (1 + self.pileup // 4))
        size = min(maximum, -(-self.events // _MIN_CHUNKS))
        end = self.first_event + self.events
        return [range(first, min(first + size, end)) for first in range(self.first_event, end, size)]

    def folder(self, name: str) -> Path:
        """Return the folder ``name`` of the working directory; creates it and records the order in it.

        Raises StageFailed if it belongs to another order.
        """
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        identity = {"version": VERSION} | {k: v for k, v in asdict(self).items() if k != "work"}
        ours = json.dumps(identity, sort_keys=True)
        path = folder / _ORDER
        if not path.exists():
            with writing(path) as partial:
                partial.write_text(ours)
        elif path.read_text() != ours:
            raise StageError(f"{folder} belongs to another order: remove it, or use another directory")
        return folder

    def chunk(self, name: str, events: range) -> Path:
        """Return the path of a chunk's file in the folder ``name``."""
        return self.work / name / f"events-{events.start:010}-{events.stop:010}.arrow"

    def require(self, name: str) -> None:
        """Raise StageFailed unless the folder ``name`` has every chunk of this order."""
        self.folder(name)
        missing = [chunk for chunk in self.chunks() if not self.chunk(name, chunk).exists()]
        if missing:
            first, more = missing[0], len(missing) - 1
            raise StageError(
                f"{self.work / name} lacks events {first.start} to {first.stop - 1}"
                f"{f' and {more} more chunks' if more else ''}: run the previous stage first"
            )


class Phase(ABC):
    """A part of a stage, divided into tasks numbered from 0.

    Tasks are idempotent and independent: any process may run them, in any order.
    """

    name: ClassVar[str]

    def __init__(self, order: StageOrder) -> None:
        """Prepare the phase. Raises StageFailed if the working directory does not have what it needs."""
        self.order = order

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Number of events, or other items, of each task."""

    @abstractmethod
    def is_done(self, task: int) -> bool:
        """Whether an earlier run has completed the task."""

    @abstractmethod
    def do(self, task: int) -> None:
        """Run the task; its files are complete on return."""


class ChunkPhase(Phase):
    """A phase with one task per chunk of events, which reads files of the previous stage and writes files."""

    #: Folders to read from and to write to.
    sources: ClassVar[tuple[str, ...]] = ()
    targets: ClassVar[tuple[str, ...]]

    def __init__(self, order: StageOrder) -> None:
        super().__init__(order)
        self._chunks = order.chunks()
        for source in self.sources:
            order.require(source)
        for target in self.targets:
            order.folder(target)

    @abstractmethod
    def make(self, events: range, sources: Sequence[pa.Table]) -> Sequence[pa.Table]:
        """Return the tables of these events, one for each target."""

    @property
    def sizes(self) -> list[int]:
        return [len(chunk) for chunk in self._chunks]

    def is_done(self, task: int) -> bool:
        return all(self.order.chunk(target, self._chunks[task]).exists() for target in self.targets)

    def do(self, task: int) -> None:
        chunk = self._chunks[task]
        made = self.make(chunk, [files.read(self.order.chunk(source, chunk)) for source in self.sources])
        for target, table in zip(self.targets, made, strict=True):
            files.write(self.order.chunk(target, chunk), table)
