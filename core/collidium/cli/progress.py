"""Progress bars and status lines: on standard error, and only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from collidium.cli.output import note
from collidium.cli.text import printable

#: Called with what is done and what there is in all.
Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(label: str, after: str | None = None, *, sizes: bool = False) -> Iterator[Progress | None]:
    """A bar that is told how far things are; when all is done it shows ``after``.

    ``sizes`` shows bytes, speed and the time that is left. Gives None where nobody watches.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    amounts: list[progress.ProgressColumn] = [progress.MofNCompleteColumn()]
    if sizes:
        amounts = [progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn()]
    columns = [progress.TextColumn("{task.description}"), progress.BarColumn(), *amounts]
    bar = progress.Progress(
        *columns, progress.TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    with bar:
        task = bar.add_task(label, total=None)

        def show(done: int, total: int) -> None:
            finished = after is not None and done >= total
            bar.update(task, completed=done, total=total, description=after if finished else label)

        yield show


@contextmanager
def progress_bars(steps: Mapping[str, tuple[str, bool]]) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each step, one after the other: its label, and whether it shows sizes, by the step's name."""
    with ExitStack() as stack:
        bars: dict[str, Progress | None] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in bars:
                stack.close()
                label, sizes = steps[step]
                bars[step] = stack.enter_context(progress_bar(label, sizes=sizes))
            if show := bars[step]:
                show(done, total)

        yield tell


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """A line on standard error that is told what goes on, with the time that has passed.

    Where nobody watches, each new message is a line of its own.
    """
    if not sys.stderr.isatty():
        told = ""

        def say(message: str) -> None:
            nonlocal told
            if message != told:
                told = message
                note(message)

        yield say
        return
    from rich import progress
    from rich.console import Console

    columns = [progress.SpinnerColumn(), progress.TextColumn("{task.fields[told]}", markup=False)]
    line = progress.Progress(
        *columns, progress.TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    with line:
        task = line.add_task("", total=None, told="")
        yield lambda message: line.update(task, told=printable(message))
