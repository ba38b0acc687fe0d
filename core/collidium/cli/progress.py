"""Progress bars and status lines: on standard error, and only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from collidium.cli.output import note, printable

#: Called with the amount done and the total.
Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(label: str, after: str | None = None, *, sizes: bool = False) -> Iterator[Progress | None]:
    """A bar with ``label``, and ``after`` when all is done; gives None without a terminal.

    ``sizes`` shows bytes, speed and remaining time.
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
    """A line on standard error with the last message and the elapsed time.

    Without a terminal each new message is a line of its own.
    """
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
    from rich.console import Console

    columns = [progress.SpinnerColumn(), progress.TextColumn("{task.fields[message]}", markup=False)]
    line = progress.Progress(
        *columns, progress.TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    with line:
        task = line.add_task("", total=None, message="")
        yield lambda message: line.update(task, message=printable(message))
