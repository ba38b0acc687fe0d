"""Command line of the stages: ``python -m collidium_plugins.acts_pipeline STAGE --channel … --work DIR``.

Exit codes: 0 success, 1 the stage failed, 2 invalid arguments, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import click

from collidium.contracts.pipeline import SEED
from collidium.errors import InvalidInput
from collidium.files.durable import is_full
from collidium.order import Variation
from collidium_plugins.acts_pipeline import PIPELINE, files, workers
from collidium_plugins.acts_pipeline.generation.channels import CHANNELS, REFUSED
from collidium_plugins.acts_pipeline.order import StageError, StageOrder
from collidium_plugins.acts_pipeline.stages import phases

#: Event ids have 32 bits.
_MAX_EVENTS: Final = 2**32
_MAX_PROCESSES: Final = 256


def _check_channel(channel: str) -> None:
    if channel in REFUSED:
        raise click.BadParameter(f"{channel} cannot be generated here. {REFUSED[channel]}")
    if channel not in CHANNELS:
        raise click.BadParameter(f"{channel!r} is not a channel; there are {', '.join(CHANNELS)}")


def _check_variation(_ctx: click.Context, _option: click.Parameter, text: str) -> Variation:
    try:
        return Variation.parse(text)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("stage", type=click.Choice([*(stage.name for stage in PIPELINE.stages), "hepmc3"]))
@click.option("--channel", required=True)
@click.option("--events", required=True, type=click.IntRange(1, _MAX_EVENTS))
@click.option("--pileup", default=0, type=click.IntRange(0, PIPELINE.max_pileup))
@click.option("--seed", envvar=SEED, default=42, type=click.IntRange(0, PIPELINE.largest_seed))
@click.option("--vary", default="", callback=_check_variation)
@click.option("--lhe", default="")
@click.option("--first-event", default=0, type=click.IntRange(0, _MAX_EVENTS - 1))
@click.option("--processes", default=1, type=click.IntRange(1, _MAX_PROCESSES))
@click.option("--work", required=True, type=click.Path(path_type=Path))
@click.option("--worker", hidden=True)
def main(
    stage: str,
    channel: str,
    events: int,
    pileup: int,
    seed: int,
    vary: Variation,
    lhe: str,
    first_event: int,
    processes: int,
    work: Path,
    worker: str | None,
) -> None:
    """Run a stage of the built-in pipeline; hepmc3 writes the generated events as HepMC3 text."""
    if not lhe:
        _check_channel(channel)
    if first_event + events > _MAX_EVENTS:
        raise click.UsageError(f"event ids end at {_MAX_EVENTS - 1}")
    order = StageOrder(channel, events, pileup, seed, first_event, work, vary, lhe)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if worker else _terminated)
    try:
        if worker:
            (phase,) = (phase for phase in phases(stage, order) if phase.name == worker)
            workers.serve(_with_garbage_collection(phase.do))
        else:
            _run(stage, order, sys.argv[1:], processes)
    except Exception as error:  # raised again, unless it is of the pipeline
        message = failure_text(error)
        if message is None:  # a bug: the log shows where
            raise
        sys.exit(f"error: {message}")


def _run(stage: str, order: StageOrder, arguments: Sequence[str], processes: int) -> None:
    files.sweep(order.work)
    todo = phases(stage, order)
    progress = _Progress(sum(sum(phase.sizes) for phase in todo))
    for phase in todo:
        sizes = phase.sizes
        pending = [task for task in range(len(sizes)) if not phase.is_done(task)]
        progress.add(sum(sizes) - sum(sizes[task] for task in pending))
        workers.run(
            pending,
            _with_garbage_collection(phase.do),
            [*arguments, "--worker", phase.name],
            processes,
            lambda task, sizes=sizes: progress.add(sizes[task]),  # type: ignore[misc]  # a default binds it
        )


def _with_garbage_collection(do: workers.Do) -> workers.Do:
    """Collect garbage after each task only: within loops over particles it doubles their time."""
    gc.disable()

    def do_and_collect(task: int) -> None:
        do(task)
        gc.collect()
        gc.freeze()  # the detector and the pools are kept

    return do_and_collect


def failure_text(error: Exception) -> str | None:
    """Return one line for the log, or None for a bug, which needs its traceback."""
    if isinstance(error, StageError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in {"acts", "awkward", "fastjet", "pythia8mc"}:
        return f"{error.name} is not installed: pip install 'collidium[sim]'"
    if isinstance(error, OSError) and is_full(error):
        return f"the disk is full ({error.strerror}); finished work is kept, and the same command resumes"
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    return None


class _Progress:
    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._lock = threading.Lock()

    def add(self, done: int) -> None:
        with self._lock:
            self._done += done
            print(f"collidium-progress {self._done} {self._total}", flush=True)  # noqa: T201  # a command


def _terminated(number: int, _frame: FrameType | None) -> None:
    """Unwind the stack, so that workers are stopped and incomplete files are removed."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main(prog_name=f"python -m {__package__}")
