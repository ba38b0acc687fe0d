"""Progress bars, status lines and the progress of stages, on standard error. Bars need a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.cli.output import note, printable
from collidium.presentation.quantities import duration_text
from collidium.runtime.progress import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

    from collidium.pipelines.stages import Progress as StageProgress
    from collidium.pipelines.stages import ReportProgress


@contextmanager
def progress_bar(label: str, after: str | None = None, *, sizes: bool = False) -> Iterator[Progress | None]:
    """Show a progress bar and yield a function that updates it; without a terminal, yield None.

    The label changes to ``after`` when all is done. ``sizes`` shows bytes, speed and remaining time.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress

    amounts: list[ProgressColumn] = [progress.MofNCompleteColumn()]
    if sizes:
        amounts = [progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn()]
    label = printable(label)
    text = progress.TextColumn("{task.description}", markup=False)
    with _transient(text, progress.BarColumn(), *amounts) as bar:
        task = bar.add_task(label, total=None)

        def show(done: int, total: int) -> None:
            finished = after is not None and done >= total
            bar.update(task, completed=done, total=total, description=after if finished else label)

        yield show


def _transient(*columns: ProgressColumn) -> Bars:
    """Create bars with the elapsed time, which disappear at the end."""
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)


@contextmanager
def progress_bars(steps: Mapping[str, tuple[str, bool]]) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar per step. ``steps`` has the label of each, and whether it shows sizes."""
    with ExitStack() as stack:
        bars: dict[str, Progress | None] = {}

        def update(step: str, done: int, total: int) -> None:
            if step not in bars:
                stack.close()
                label, sizes = steps[step]
                bars[step] = stack.enter_context(progress_bar(label, sizes=sizes))
            if show := bars[step]:
                show(done, total)

        yield update


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Show a line with the last message and the elapsed time; without a terminal, a line per message."""
    if not sys.stderr.isatty():
        last = ""

        def write(message: str) -> None:
            nonlocal last
            if message != last:
                last = message
                note(message)

        yield write
        return
    from rich import progress

    text = progress.TextColumn("{task.fields[message]}", markup=False)
    with _transient(progress.SpinnerColumn(), text) as line:
        task = line.add_task("", total=None, message="")
        yield lambda message: line.update(task, message=printable(message))


#: Seconds between the lines of a long step or stage, without a terminal.
LINE_SECONDS: Final = 60
#: Minimum seconds between two writes of the progress file.
_FILE_SECONDS: Final = 0.5


@contextmanager
def stage_progress() -> Iterator[ReportProgress]:
    """Show the progress of stages, and write it to the progress file if a runner has set one."""
    from collidium.contracts.runner import PROGRESS_FILE

    with _Live() if sys.stderr.isatty() else nullcontext(_Lines()) as shown:
        watched = os.environ.get(PROGRESS_FILE)
        if not watched:
            yield shown.update
            return
        file = _File(Path(watched))

        def update(progress: StageProgress) -> None:
            shown.update(progress)
            file.update(progress)

        yield update


class _File:
    """The progress file that the runner of a job reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = 0.0

    def update(self, progress: StageProgress) -> None:
        now = time.monotonic()
        if now - self._written < _FILE_SECONDS and progress.state == "running":
            return
        self._written = now
        import msgspec

        from collidium.contracts.runner import JobProgress

        job = JobProgress(
            stage=progress.number,
            stages=progress.of,
            title=progress.stage.title,
            fraction=progress.fraction,
            seconds_left=progress.remaining_seconds,
        )
        with suppress(OSError):  # the job continues without showing progress
            new = self._path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(job))
            new.replace(self._path)


class StepLines:
    """Without a terminal: a line when a step begins, and one a minute while it lasts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._step = self._text = ""
        self._began = self._shown = 0.0

    def show(self, step: str, text: str) -> None:
        """Print the text if the step is new, else keep it for :meth:`remind`."""
        self._text = text
        if step != self._step:
            self._step = step
            self._began = self._shown = self._clock()
            note(text)

    def remind(self) -> None:
        """Print the last text, with the duration of the step, if no line was printed for a minute."""
        now = self._clock()
        if self._step and now - self._shown >= LINE_SECONDS:
            self._shown = now
            note(f"{self._text}, running for {duration_text(now - self._began)}")


class _Lines:
    """Prints a line when a stage begins and ends, and one a minute while it lasts."""

    def __init__(self) -> None:
        self._number = 0
        self._shown = 0.0

    def update(self, progress: StageProgress) -> None:
        name = f"{progress.number}/{progress.of} {progress.stage.name}"
        if progress.state == "kept":
            note(f"{name}: finished before")
        elif progress.state == "done":
            note(f"{name}: done in {duration_text(progress.elapsed_seconds)}")
        elif progress.state == "failed":
            note(f"{name}: not finished after {duration_text(progress.elapsed_seconds)}")
        elif progress.number != self._number:
            self._number, self._shown = progress.number, 0.0
            left = progress.remaining_seconds
            about = f" (about {duration_text(left)})" if left else ""
            note(f"{name}: {progress.stage.title}{about}")
        elif progress.elapsed_seconds - self._shown >= LINE_SECONDS:
            self._shown = progress.elapsed_seconds
            percent = "" if progress.guessed else f"{progress.fraction:.0%}, "
            note(f"{name}: {percent}{_status(progress)}")


class _Live:
    """Shows a progress bar per stage."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        self._bars: Bars = progress.Progress(
            progress.TextColumn("{task.fields[label]}", markup=False),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[status]}", markup=False),
            console=Console(stderr=True),
        )
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> _Live:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def update(self, progress: StageProgress) -> None:
        label = printable(f"{progress.number}/{progress.of} {progress.stage.title}")
        if progress.number not in self._tasks:
            self._tasks[progress.number] = self._bars.add_task("", total=1.0, label=label, status="")
        self._bars.update(self._tasks[progress.number], completed=progress.fraction, status=_status(progress))


def _status(progress: StageProgress) -> str:
    if progress.state == "kept":
        return "finished before"
    elapsed = duration_text(progress.elapsed_seconds)
    if progress.state == "running" and progress.remaining_seconds:
        return f"{elapsed}, about {duration_text(progress.remaining_seconds)} left"
    return elapsed if progress.state != "failed" else f"not finished after {elapsed}"
