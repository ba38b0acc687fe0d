"""Shows how far the stages are: live on a terminal, else in lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from collidium.cli.output import note
from collidium.cli.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from collidium.pipelines.stages import Progress, ReportProgress

#: Lines tell of a stage at its ends and at these parts of it.
_MARKS: Final = (0.25, 0.5, 0.75)
_SHORT_SECONDS: Final = 60


@contextmanager
def shown() -> Iterator[ReportProgress]:
    """Shows on standard error what it is told."""
    if sys.stderr.isatty():
        with _Live() as live:
            yield live.tell
    else:
        yield _Lines().tell


def told_time(seconds: float) -> str:
    """A time for people: 4 s, 3 min, 2 h 10 min."""
    if seconds < _SHORT_SECONDS:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class _Lines:
    """A line when a stage begins, at some marks if it is long, and when it ends."""

    def __init__(self) -> None:
        self._number = 0
        self._marks: list[float] = []

    def tell(self, progress: Progress) -> None:
        name = f"{progress.number}/{progress.of} {progress.stage.name}"
        if progress.state == "kept":
            note(f"{name}: finished before")
        elif progress.state == "done":
            note(f"{name}: done in {told_time(progress.elapsed_seconds)}")
        elif progress.state == "failed":
            note(f"{name}: not finished after {told_time(progress.elapsed_seconds)}")
        elif progress.number != self._number:
            self._number, self._marks = progress.number, list(_MARKS)
            left = progress.remaining_seconds
            about = f" (about {told_time(left)})" if left else ""
            note(f"{name}: {progress.stage.title}{about}")
        else:
            self._tell_marks(name, progress)

    def _tell_marks(self, name: str, progress: Progress) -> None:
        passed = [mark for mark in self._marks if mark <= progress.fraction]
        left = progress.remaining_seconds
        if not passed or progress.guessed or left is None:
            return
        self._marks = self._marks[len(passed) :]
        if progress.elapsed_seconds + left >= _SHORT_SECONDS:
            note(f"{name}: {progress.fraction:.0%}, about {told_time(left)} left")


class _Live:
    """A bar for each stage."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        self._bars: Bars = progress.Progress(
            progress.TextColumn("{task.fields[label]}", markup=False),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[told]}", markup=False),
            console=Console(stderr=True),
        )
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> _Live:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def tell(self, progress: Progress) -> None:
        label = printable(f"{progress.number}/{progress.of} {progress.stage.title}")
        if progress.number not in self._tasks:
            self._tasks[progress.number] = self._bars.add_task("", total=1.0, label=label, told="")
        self._bars.update(self._tasks[progress.number], completed=progress.fraction, told=_beside(progress))


def _beside(progress: Progress) -> str:
    """What stands beside the bar."""
    if progress.state == "kept":
        return "finished before"
    elapsed = told_time(progress.elapsed_seconds)
    if progress.state == "running" and progress.remaining_seconds:
        return f"{elapsed}, about {told_time(progress.remaining_seconds)} left"
    return elapsed if progress.state != "failed" else f"not finished after {elapsed}"
