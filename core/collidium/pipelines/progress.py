"""How far a simulation is, and how long it will take: told by its stages, else estimated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from collidium.contracts.pipeline import Stage
from collidium.order import Order

#: Pileup at which an event takes twice as long as without.
_DOUBLING_PILEUP: Final = 50
#: An estimate never says that a stage is done: that is for the stage to say.
_MOST_GUESSED: Final = 0.95
_TOLD: Final = re.compile(rb"collidium-progress (\d{1,12}) (\d{1,12})\s*")


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage of a simulation, as seen once."""

    stage: Stage
    #: Which one of how many it is, from 1.
    number: int
    of: int
    #: ``kept``: an earlier run had finished it.
    state: Literal["kept", "running", "done", "failed"]
    #: What is done of it, from 0 to 1; ``guessed`` from the time that it was expected to take, or told by it.
    fraction: float
    guessed: bool
    elapsed_seconds: float
    #: Until it is done, None where nobody knows.
    remaining_seconds: float | None


#: Called whenever something changes, and some times in a second.
Tell = Callable[[Progress], None]


def expected_seconds(stage: Stage, order: Order, processes: int) -> float:
    """How long a stage is expected to take."""
    of_events = stage.seconds_per_event * order.events * (1 + order.pileup / _DOUBLING_PILEUP)
    return stage.overhead_seconds + of_events / max(1, min(processes, order.events))


def told_fraction(line: bytes) -> float | None:
    """What a line of a stage says is done; None for a line that says nothing of it."""
    match = _TOLD.fullmatch(line)
    if match is None or int(match[2]) == 0:
        return None
    return min(int(match[1]) / int(match[2]), 1.0)


def running(
    stage: Stage, number: int, of: int, told: float | None, elapsed: float, expected: float
) -> Progress:
    """How far a running stage is, by what it told, else by the time that it was expected to take."""
    if told is not None:
        remaining = elapsed * (1 - told) / told if told > 0 else None
        return Progress(stage, number, of, "running", told, False, elapsed, remaining)
    guess = min(elapsed / expected, _MOST_GUESSED) if expected > 0 else 0.0
    return Progress(stage, number, of, "running", guess, True, elapsed, max(expected - elapsed, 0.0) or None)
