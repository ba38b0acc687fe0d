"""A part of a stage that is cut into tasks, which any process may do in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from collidium_plugins.acts_pipeline import files
from collidium_plugins.acts_pipeline.order import Order


class Phase(ABC):
    """Tasks are numbered from 0; doing one again does no harm."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """How many events, or other things alike, each task makes."""

    @abstractmethod
    def is_done(self, task: int) -> bool:
        """Whether an earlier run did it."""

    @abstractmethod
    def do(self, task: int) -> None:
        """Do it: its files are there, whole, when this returns."""


class ChunkPhase(Phase):
    """Makes files of chunks of events from those of the stage before, one task for a chunk."""

    #: Folders that hold the files of a chunk which are read, and those that it makes.
    sources: ClassVar[tuple[str, ...]] = ()
    targets: ClassVar[tuple[str, ...]]

    def __init__(self, order: Order) -> None:
        """Raises StageFailed where a source is not complete, or is of another order."""
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
