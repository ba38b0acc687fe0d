"""The order of a stage, its chunks of events, and the phases that process them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa

from collidium.order import NOMINAL, Variation
from collidium_plugins.acts_pipeline import VERSION, files
from collidium_plugins.acts_pipeline.files import writing

_ORDER: Final = "order.json"
#: Minimum number of chunks of a run, so that all processes stay busy, and maximum events of a chunk.
_CHUNKS: Final = 16
_MAX_EVENTS: Final = 50


class StageFailed(RuntimeError):
    """A stage failed; the message gives the reason and what to do."""


@dataclass(frozen=True, slots=True)
class Order:
    """The events to make, and the directory to work in."""

    channel: str
    events: int
    pileup: int
    seed: int
    first_event: int
    work: Path
    #: Of the detector; random numbers do not depend on it, so that varied events are compared one by one.
    variation: Variation = NOMINAL
    #: The sha256 of the file that hard processes come from, empty without one.
    lhe: str = ""

    def chunks(self) -> list[range]:
        """The event ids of each chunk. Events do not depend on chunks; finished work is kept by chunk."""
        maximum = max(1, _MAX_EVENTS // (1 + self.pileup // 4))
        size = min(maximum, -(-self.events // _CHUNKS))
        end = self.first_event + self.events
        return [range(first, min(first + size, end)) for first in range(self.first_event, end, size)]

    def folder(self, name: str) -> Path:
        """The folder ``name`` of the working directory, made when absent.

        Raises StageFailed if it belongs to another order.
        """
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        ours = json.dumps(dict(self._identity()), sort_keys=True)
        path = folder / _ORDER
        if not path.exists():
            with writing(path) as partial:
                partial.write_text(ours)
        elif path.read_text() != ours:
            raise StageFailed(f"{folder} belongs to another order: remove it, or use another directory")
        return folder

    def chunk(self, name: str, events: range) -> Path:
        """The file of a chunk in the folder ``name``."""
        return self.work / name / f"events-{events.start:010}-{events.stop:010}.arrow"

    def require(self, name: str) -> None:
        """Raises StageFailed unless the folder ``name`` has every chunk of this order."""
        self.folder(name)
        missing = [chunk for chunk in self.chunks() if not self.chunk(name, chunk).exists()]
        if missing:
            first, more = missing[0], len(missing) - 1
            raise StageFailed(
                f"{self.work / name} lacks events {first.start} to {first.stop - 1}"
                f"{f' and {more} more chunks' if more else ''}: run the previous stage first"
            )

    def _identity(self) -> Mapping[str, object]:
        return {"version": VERSION} | {k: v for k, v in asdict(self).items() if k != "work"}


class Phase(ABC):
    """A part of a stage, cut into tasks that any process may do in any order.

    Tasks are numbered from 0 and can be repeated.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Number of events, or other items, of each task."""

    @abstractmethod
    def is_done(self, task: int) -> bool:
        """Whether an earlier run has done the task."""

    @abstractmethod
    def do(self, task: int) -> None:
        """Do the task; its files are complete when this returns."""


class ChunkPhase(Phase):
    """Makes files of chunks of events from those of the previous stage, one task for each chunk."""

    #: Folders of the files that are read, and of those that are written.
    sources: ClassVar[tuple[str, ...]] = ()
    targets: ClassVar[tuple[str, ...]]

    def __init__(self, order: Order) -> None:
        """Raises StageFailed if a source is incomplete or of another order."""
        self.order = order
        self._chunks = order.chunks()
        for source in self.sources:
            order.require(source)
        for target in self.targets:
            order.folder(target)

    @abstractmethod
    def make(self, events: range, sources: Sequence[pa.Table]) -> Sequence[pa.Table]:
        """The tables of these events, one for each target."""

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
