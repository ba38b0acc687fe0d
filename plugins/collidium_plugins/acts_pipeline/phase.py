"""A part of a stage that is cut into tasks, which any process may do in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


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
        """Do it: its file is there, whole, when this returns."""
