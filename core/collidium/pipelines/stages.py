"""Run the stages of a pipeline in order, from the first that is not finished."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from collidium.contracts.pipeline import SEED, Stage
from collidium.files import untrusted
from collidium.files.durable import is_full
from collidium.order import Order
from collidium.pipelines import processes
from collidium.pipelines.processes import Runtime, end_quietly
from collidium.pipelines.production import CannotSimulate, Production, StageFailed
from collidium.pipelines.work import Work
from collidium.runtime.logs import single_line

#: Number of last lines of a log that are shown with a failure.
LAST_LINES: Final = 12
#: A disk with less free space counts as full.
_MINIMUM_BYTES: Final = 1024**2
#: Maximum number of processes of a stage by default: each needs memory.
_MAX_PROCESSES: Final = 8


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of one simulation."""

    production: Production
    work: Work
    runtime: Runtime
    #: Number of processes; None for :func:`default_processes`.
    cores: int | None
    report: ReportProgress
    #: When the simulation must have ended, on the clock of ``time.monotonic``.
    deadline: float | None

    def run(self) -> None:
        """Run the unfinished stages. Raises StageFailed and CannotSimulate. Blocks."""
        todo = self._unfinished()
        if todo:
            self.runtime.clear(self.work.place)
        for number, stage in enumerate(self.production.pipeline.stages, start=1):
            if stage in todo:
                self._run(stage, number)
            else:
                self.report(Progress(stage, number, self._count, "kept", 1.0, False, 0.0, 0.0))

    @property
    def _count(self) -> int:
        return len(self.production.pipeline.stages)

    def _unfinished(self) -> list[Stage]:
        """Return the stages from the first unfinished one on."""
        stages = list(self.production.pipeline.stages)
        while stages and self.work.is_finished(stages[0]):
            stages.pop(0)
        return stages

    def _run(self, stage: Stage, number: int) -> None:
        self.work.prepare(stage)
        watch = _Watch(stage, number, self._count, self._expected(stage), self.report)
        try:
            with untrusted.new(self.work.log(stage)) as file:
                code = self._start(stage, processes.Log(file, watch.listen), watch.tick)
            if code:
                raise self._failed(stage, number, f"failed: exit code {code}")
            self.work.finish(stage)
        except OSError as error:
            watch.end("failed")
            if is_full(error):
                raise CannotSimulate(_full(self.work.directory, stage)) from error
            raise StageFailed(f"stage {stage.name} cannot be run: {single_line(str(error))}") from error
        except BaseException:  # also KeyboardInterrupt
            watch.end("failed")
            raise
        watch.end("done")

    def _start(self, stage: Stage, log: processes.Log, tick: Callable[[], None]) -> int:
        place = self.work.place
        words = self.production.words(
            stage, python=self.runtime.python, work=self.runtime.seen(place), processes=self._processes(stage)
        )
        left = None if self.deadline is None else self.deadline - time.monotonic()
        finished = False
        try:
            code = processes.run(
                self.runtime.command(stage, words, place, left),
                log,
                directory=place,
                environment={**self.runtime.environment(place), SEED: str(self.production.order.seed)},
                tick=tick,
                deadline=self.deadline,
                removing=self.runtime.removing(place),
            )
            finished = code == 0
        except processes.TimeIsOver:
            raise CannotSimulate(
                f"the time limit was over in stage {stage.name}; what is finished is kept: the same command "
                "with a longer --time-limit continues from there"
            ) from None
        finally:
            if not finished:
                end_quietly(self.runtime, place)
        return code

    def _failed(self, stage: Stage, number: int, how: str) -> StageFailed | CannotSimulate:
        log = self.work.log(stage)
        lines = processes.tail(log, LAST_LINES)
        with suppress(OSError):
            if _is_full(self.work.directory, lines):
                return CannotSimulate(_full(self.work.directory, stage), errors=_details(lines))
        return StageFailed(
            f"stage {number} of {self._count}, {stage.name} ({stage.title}), {how}. Its log is {log}"
            f"{'; it ends with' if lines else ', and empty'}",
            errors=_details(lines),
        )

    def _expected(self, stage: Stage) -> float:
        return expected_seconds(stage, self.production.order, self._processes(stage))

    def _processes(self, stage: Stage) -> int:
        return self.cores or default_processes(stage, self.production.order)


class _Watch:
    """Reports the progress of a running stage."""

    def __init__(self, stage: Stage, number: int, of: int, expected: float, report: ReportProgress) -> None:
        self._stage, self._number, self._of = stage, number, of
        self._expected = expected
        self._report = report
        self._began = time.monotonic()
        self._fraction: float | None = None
        self.tick()

    def listen(self, line: bytes) -> bool:
        """Process a line of output; return whether it is a progress report and not part of the log."""
        fraction = reported_fraction(line)
        if fraction is None:
            return False
        self._fraction = fraction
        self.tick()
        return True

    def tick(self) -> None:
        elapsed = time.monotonic() - self._began
        self._report(running(self._stage, self._number, self._of, self._fraction, elapsed, self._expected))

    def end(self, how: Literal["done", "failed"]) -> None:
        elapsed = time.monotonic() - self._began
        fraction, remaining = (1.0, 0.0) if how == "done" else (self._fraction or 0.0, None)
        self._report(Progress(self._stage, self._number, self._of, how, fraction, False, elapsed, remaining))


def _is_full(directory: Path, lines: Iterable[str]) -> bool:
    return shutil.disk_usage(directory).free < _MINIMUM_BYTES or any(
        "No space left on device" in line or "disk is full" in line for line in lines
    )


def _full(directory: Path, stage: Stage) -> str:
    return (
        f"the disk of {directory} is full: stage {stage.name} could not continue. Free some space; the same "
        "command then continues after the last finished stage"
    )


def _details(lines: Iterable[str]) -> list[dict[str, str]]:
    return [{"detail": single_line(line)} for line in lines]


#: Maximum of a guessed fraction.
_MAX_GUESS: Final = 0.95
_PROGRESS: Final = re.compile(rb"collidium-progress (\d{1,12}) (\d{1,12})\s*")


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a stage."""

    stage: Stage
    #: Its number from 1, and the number of stages.
    number: int
    of: int
    #: ``kept``: an earlier run had finished it.
    state: Literal["kept", "running", "done", "failed"]
    #: The finished fraction, reported by the stage or ``guessed`` from its expected time.
    fraction: float
    guessed: bool
    elapsed_seconds: float
    #: None if unknown.
    remaining_seconds: float | None


#: Called with each change, and several times a second.
ReportProgress = Callable[[Progress], None]


def default_processes(stage: Stage, order: Order) -> int:
    """Return one per CPU, at most 8; one process if starting them takes longer than the events."""
    if order.events * (1 + order.pileup) * stage.seconds_per_event < stage.overhead_seconds:
        return 1
    return min(len(os.sched_getaffinity(0)), _MAX_PROCESSES)


def expected_seconds(stage: Stage, order: Order, processes: int) -> float:
    """Return the expected time of a stage."""
    of_events = stage.seconds_per_event * order.events * order.pileup_cost
    return stage.overhead_seconds + of_events / max(1, min(processes, order.events))


def reported_fraction(line: bytes) -> float | None:
    """Return the fraction that a line reports as done; None for any other line."""
    match = _PROGRESS.fullmatch(line)
    if match is None or int(match[2]) == 0:
        return None
    return min(int(match[1]) / int(match[2]), 1.0)


def running(
    stage: Stage, number: int, of: int, reported: float | None, elapsed: float, expected: float
) -> Progress:
    """Return the progress of a running stage, as reported or else guessed from its expected time."""
    if reported is not None:
        remaining = elapsed * (1 - reported) / reported if reported > 0 else None
        return Progress(stage, number, of, "running", reported, False, elapsed, remaining)
    guess = min(elapsed / expected, _MAX_GUESS) if expected > 0 else 0.0
    return Progress(stage, number, of, "running", guess, True, elapsed, max(expected - elapsed, 0.0) or None)
