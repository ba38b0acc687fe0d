"""The speed of a model: CPU seconds of an event on one core of a nominal machine.

Per-event minimum over passes of the process's CPU time, one event a call, in random order, post-processing
included, loading and warm-up excluded; divided by a reference model that is timed in the same run, in a
process of its own on the same core, and scaled to a machine where that takes :data:`NOMINAL_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from collidium.contracts.task import Tables, Task
from collidium.inference.running import Model
from collidium.inference.sandbox import Limits

PASSES: Final = 5
WARM_UP: Final = 2
#: Blocks of a measurement, each in fresh processes; a server runs them minutes apart.
BLOCKS: Final = 3


class TimedBlock(Struct, frozen=True):
    """One block of a measurement; plain data, to be kept until the others are there."""

    #: CPU seconds of each event on the nominal machine, in the order of the events.
    seconds: list[float]
    #: Without reference and nominal machine: CPU and wall-clock seconds of the median event, memory peak.
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    #: CPU seconds of the reference model, and its scatter over the passes, as a fraction.
    reference_seconds: float
    reference_scatter: float


class Timing(Struct, frozen=True):
    """A measured speed and its standard error."""

    seconds: float
    error: float
    events: int
    passes: int
    blocks: list[TimedBlock]


def time_block(
    model: Model,
    task: Task,
    tables: Tables,
    *,
    limits: Limits,
    passes: int = PASSES,
    seed: int | None = None,
    details: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> TimedBlock:
    """Time a model on events in memory, once in fresh processes; one at a time on a machine.

    Raises
    ------
    ModelRefused
        As :func:`~collidium.inference.running.predict`; with :attr:`~collidium.inference.codes.Code.NOISY`
        where the reference scatters by more than 5%: repeat it later; ``HIDDEN_WORK`` and ``UNSTEADY``.
    """
    raise NotImplementedError


def combine(blocks: Sequence[TimedBlock]) -> Timing:
    """The median of blocks, with the errors of events and of blocks, and 2% that no repetition shows."""
    raise NotImplementedError
