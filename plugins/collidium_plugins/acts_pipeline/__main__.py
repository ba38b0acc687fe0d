"""The commands of the stages: ``python -m collidium_plugins.acts_pipeline STAGE --channel … --work DIR``.

Exit codes: 0 done, 1 the stage failed, 2 the arguments are wrong, 130 and 143 interrupted and terminated.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from collidium.files.durable import is_full
from collidium_plugins.acts_pipeline import PIPELINE, files, workers
from collidium_plugins.acts_pipeline.generation.channels import CHANNELS, REFUSED
from collidium_plugins.acts_pipeline.order import Order, Phase, StageFailed
from collidium_plugins.acts_pipeline.stages import phases

#: Vertices are numbered in 16 bits, events in 32, seeds as everywhere in the platform.
_MAX_PILEUP: Final = 1_000
_MAX_EVENTS: Final = 2**32
_MAX_SEED: Final = 2**31 - 1
_MAX_PROCESSES: Final = 256


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stage that the arguments name; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(arguments)
    order = Order(
        options.channel, options.events, options.pileup, options.seed, options.first_event, options.work
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if options.worker else _terminated)
    try:
        if options.worker:
            workers.serve(_phase(options.stage, order, options.worker).do)
        else:
            _run(options.stage, order, arguments, options.processes)
    except Exception as error:
        message = failure_text(error)
        if message is None:  # a bug: the log shows where
            raise
        print(f"error: {message}", file=sys.stderr)  # noqa: T201  # a command
        return 1
    return 0


def _run(stage: str, order: Order, arguments: Sequence[str], processes: int) -> None:
    files.sweep(order.work)
    todo = phases(stage, order)
    progress = _Progress(sum(sum(phase.sizes) for phase in todo))
    for phase in todo:
        sizes = phase.sizes
        pending = [task for task in range(len(sizes)) if not phase.is_done(task)]
        progress.add(sum(sizes) - sum(sizes[task] for task in pending))
        workers.run(
            pending,
            phase.do,
            [*arguments, "--worker", phase.name],
            processes,
            lambda task, sizes=sizes: progress.add(sizes[task]),  # type: ignore[misc]  # a default binds it
        )


def _phase(stage: str, order: Order, name: str) -> Phase:
    return next(phase for phase in phases(stage, order) if phase.name == name)


def failure_text(error: Exception) -> str | None:
    """One line for the log; None for a bug, whose traceback is needed."""
    if isinstance(error, StageFailed):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in {"acts", "awkward", "fastjet", "pythia8mc"}:
        return f"{error.name} is not installed: pip install 'collidium[sim]'"
    if isinstance(error, OSError) and is_full(error):
        return f"the disk is full ({error.strerror}); finished work is kept, and the same command resumes"
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    return None


class _Progress:
    """Reports the progress of the stage to the platform."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._lock = threading.Lock()

    def add(self, done: int) -> None:
        with self._lock:
            self._done += done
            print(f"collidium-progress {self._done} {self._total}", flush=True)  # noqa: T201  # a command


def _terminated(number: int, _frame: FrameType | None) -> None:
    """Unwind, so that workers are stopped and half-written files removed."""
    raise SystemExit(128 + number)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description="A stage of the built-in pipeline.", allow_abbrev=False
    )
    parser.add_argument("stage", choices=[stage.name for stage in PIPELINE.stages])
    parser.add_argument("--channel", required=True, type=_channel)
    parser.add_argument("--events", required=True, type=_between(1, _MAX_EVENTS))
    parser.add_argument("--pileup", default=0, type=_between(0, _MAX_PILEUP))
    parser.add_argument("--seed", default=42, type=_between(0, _MAX_SEED))
    parser.add_argument("--first-event", default=0, type=_between(0, _MAX_EVENTS - 1))
    parser.add_argument("--processes", default=1, type=_between(1, _MAX_PROCESSES))
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.first_event + options.events > _MAX_EVENTS:
        parser.error(f"event ids end at {_MAX_EVENTS - 1}")
    return options


def _channel(text: str) -> str:
    if text in REFUSED:
        raise argparse.ArgumentTypeError(f"{text} cannot be generated here. {REFUSED[text]}")
    if text not in CHANNELS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a channel; there are {', '.join(CHANNELS)}")
    return text


def _between(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if not minimum <= number <= maximum:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {minimum} to {maximum}")
        return number

    return parse


if __name__ == "__main__":
    sys.exit(main())
