"""A clock that tests set."""

from __future__ import annotations

from typing import Generic, TypeVar

Moment = TypeVar("Moment")


class Clock(Generic[Moment]):
    """The time, in whatever the code under test counts it: called, it is ``now``."""

    def __init__(self, now: Moment) -> None:
        self.now = now

    def __call__(self) -> Moment:
        return self.now
