"""Measures the speed of a model: CPU seconds per event on one core of a nominal machine.

Events are run one per call, in random order, in several passes. The time of an event is the minimum over
passes, with post-processing and without loading and warm-up. It is divided by the time of a reference model,
which runs on the same core in turn, and scaled to a machine where that takes :data:`NOMINAL_SECONDS`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from collidium.contracts.task import Tables, Task
from collidium.inference.batching import Inputs
from collidium.inference.cores import timing_core
from collidium.inference.manifest import interface_of
from collidium.inference.messages import Code, InputSpec, ModelRefused, OutputSpec
from collidium.inference.running import Model, open_model, run_batches
from collidium.inference.sandbox import CallBatch, Interface, Sandbox, SandboxLimits, opened
from collidium.runtime.progress import Progress

PASSES: Final = 5
WARM_UP: Final = 2
#: Blocks of a measurement, each in fresh processes; a server runs them minutes apart.
BLOCKS: Final = 3
#: CPU seconds of a call of the reference model on the nominal machine, the unit of all speeds. To set it, run
#: `perf/model_timing.py` on the idle nominal machine and take the `reference` that it prints, rounded to one
#: digit. All models on leaderboards must be timed again after a change, so a faster machine is no reason.
NOMINAL_SECONDS: Final = 0.3e-3
#: Energy counters of the kernel.
POWERCAP: Final = Path("/sys/class/powercap")
#: Shape of the input of ``reference.onnx``, a dense network that docs/make_reference_model.py writes.
REFERENCE_ROWS, REFERENCE_COLUMNS = 4000, 16
#: Calls of the reference in each pass.
_REFERENCE_CALLS: Final = 20
#: Maximum relative scatter of the reference, and minimum relative error of a speed.
_MAX_SCATTER: Final = 0.05
_MIN_ERROR: Final = 0.02
#: Minimum ratio of the sum of minima to the median sum of a pass. If it is lower, work moves between calls.
_MIN_SHARE: Final = 0.6


class TimedBlock(Struct, frozen=True):
    """One block of a measurement.

    Parameters
    ----------
    seconds
        CPU seconds of each event on the nominal machine.
    cpu_seconds, wall_seconds
        Seconds per event on this machine: the mean over events of minima over passes.
    memory_bytes
        Peak memory of the process.
    reference_seconds, reference_scatter
        CPU seconds of a call of the reference model on this machine, and their relative scatter between
        passes.
    joules
        Energy of all processors per event, the mean over passes; None if this process cannot read it.
    """

    seconds: list[float]
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    reference_seconds: float
    reference_scatter: float
    joules: float | None = None


class Timing(Struct, frozen=True):
    """A measured speed: CPU seconds per event on the nominal machine, with the standard error."""

    seconds: float
    error: float
    events: int
    blocks: list[TimedBlock]

    @property
    def in_addition(self) -> dict[str, Any]:
        """Seconds and joules per event, and memory, rounded to one digit because models can choose them."""
        joules = [block.joules for block in self.blocks if block.joules is not None]
        return {
            "wall_seconds": _one_digit(median(block.wall_seconds for block in self.blocks)),
            "memory_bytes": int(_one_digit(max(block.memory_bytes for block in self.blocks))),
            "joules": _one_digit(median(joules)) if joules else None,
        }


def time_block(
    model: Model,
    task: Task,
    tables: Tables,
    *,
    limits: SandboxLimits | None = None,
    passes: int = PASSES,
    seed: int | None = None,
    core: int | None = None,
    details: bool = True,
    progress: Progress | None = None,
) -> TimedBlock:
    """Measure one block of a model's speed in fresh processes. A machine times one model at a time.

    Parameters
    ----------
    model, task, limits, details
        As for :func:`~collidium.inference.running.check`.
    tables
        Events, as for :func:`~collidium.inference.running.predict`. Leaderboards need unpublished events.
    passes
        Number of times that each event is run.
    seed
        Seed of the order of events; default: random.
    core
        Core of both processes, which the caller holds; default: wait for that of
        :func:`~collidium.inference.cores.timing_core`.
    progress
        Called with the number of passes done, warm-up included, and the total.

    Raises
    ------
    ModelRefused
        As for predictions; with UNSTEADY if outputs differ between passes, HIDDEN_WORK if the process works
        between calls, and NOISY if the reference scatters by more than 5%: try again later.
    """
    inputs = Inputs(model.manifest, interface_of(task), tables, one_event=True)
    events = len(inputs.event_ids)
    random = np.random.default_rng(seed)
    limits = limits or SandboxLimits()
    cpu, wall, of_reference, joules, seen = [], [], [], [], set()
    with (
        timing_core(limits.on_wait) if core is None else nullcontext(core) as core,
        open_model(model, task, limits=limits, details=details, core=core) as sandbox,
        opened(_reference(), _REFERENCE, limits, details=True, core=core) as reference,
    ):
        _pass(reference, [_REFERENCE_BATCH] * _REFERENCE_CALLS)
        for number in range(WARM_UP + passes):
            order = random.permutation(events)
            # The first call of a pass takes longer whatever its event is, and does not count.
            calls = [order[-1], *order]
            before = _energy()
            seconds, digest = _pass(sandbox, (inputs.batch(range(place, place + 1)) for place in calls))
            spent = [after - before for after, before in zip(_energy(), before, strict=True)]
            again, _ = _pass(reference, [_REFERENCE_BATCH] * _REFERENCE_CALLS)
            back = np.argsort(order)
            seen.add(tuple(digest[1 + place] for place in back))
            if len(seen) > 1:
                raise ModelRefused(Code.UNSTEADY)
            if number >= WARM_UP:
                cpu.append(seconds[0][1:][back])
                wall.append(seconds[1][1:][back])
                of_reference.append(again[0].min())
                if spent and min(spent) >= 0:  # counters wrap around
                    joules.append(sum(spent) / 1e6 / len(calls))
            if progress:
                progress(number + 1, WARM_UP + passes)
        peak = sandbox.peak_bytes()
    block = _summary(np.stack(cpu), np.stack(wall), np.array(of_reference), peak)
    return structs.replace(block, joules=float(np.mean(joules)) if joules else None)


def combine(blocks: Sequence[TimedBlock]) -> Timing:
    """Return the median of blocks with its error, which has a systematic part of 2%.

    Parameters
    ----------
    blocks
        Blocks of the same events.
    """
    seconds = np.array([block.seconds for block in blocks])
    means = seconds.mean(axis=1)
    value = float(np.median(means))
    of_events = seconds.mean(axis=0).std(ddof=1) / np.sqrt(seconds.shape[1]) if seconds.shape[1] > 1 else 0.0
    of_blocks = means.std(ddof=1) if len(blocks) > 1 else 0.0
    error = float(np.sqrt(of_events**2 + of_blocks**2 / 2 + (_MIN_ERROR * value) ** 2))
    return Timing(value, error, seconds.shape[1], list(blocks))


def _pass(sandbox: Sandbox, batches: Iterable[CallBatch]) -> tuple[npt.NDArray[np.float64], list[bytes]]:
    """Return CPU and wall-clock seconds of batches, shape (2, batches), and digests of their outputs."""
    outcomes = list(run_batches(sandbox, batches))
    digests = [
        hashlib.sha256(b"".join(array.tobytes() for array in outcome.outputs)).digest()
        for outcome in outcomes
    ]
    seconds = [[outcome.cpu_seconds for outcome in outcomes], [outcome.wall_seconds for outcome in outcomes]]
    return np.array(seconds), digests


def _summary(
    cpu: npt.NDArray[np.float64], wall: npt.NDArray[np.float64], reference: npt.NDArray[np.float64], peak: int
) -> TimedBlock:
    """Take minima over passes, relative to the reference. Raises ModelRefused."""
    scatter = float(reference.std() / reference.mean())
    if scatter > _MAX_SCATTER:
        raise ModelRefused(Code.NOISY)
    minima = cpu.min(axis=0)
    if minima.sum() < _MIN_SHARE * np.median(cpu.sum(axis=1)):
        raise ModelRefused(Code.HIDDEN_WORK)
    of_reference = float(reference.min())
    return TimedBlock(
        seconds=(minima * (NOMINAL_SECONDS / of_reference)).tolist(),
        cpu_seconds=float(minima.mean()),
        wall_seconds=float(wall.min(axis=0).mean()),
        memory_bytes=peak,
        reference_seconds=of_reference,
        reference_scatter=scatter,
    )


def _energy() -> list[int]:
    """Energy counters (RAPL) of all processors in microjoules; empty if they cannot be read."""
    try:
        return [int(file.read_text()) for file in sorted(POWERCAP.glob("intel-rapl:?/energy_uj"))]
    except (OSError, ValueError):
        return []


def _one_digit(value: float) -> float:
    return float(f"{value:.0e}")


def _reference() -> bytes:
    return (files("collidium.inference") / "reference.onnx").read_bytes()


_REFERENCE: Final = Interface(
    [InputSpec("x", "float32", (REFERENCE_COLUMNS,))], [OutputSpec("y", 1, is_integer=False)]
)
_REFERENCE_BATCH: Final = CallBatch(
    REFERENCE_ROWS,
    [np.linspace(-1, 1, REFERENCE_ROWS * REFERENCE_COLUMNS, dtype=np.float32).reshape(-1, REFERENCE_COLUMNS)],
)
