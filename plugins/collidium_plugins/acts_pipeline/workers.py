"""Spreads the tasks of a stage over processes.

Each worker is this program again. It is given one task at a time, as a line on its standard input, and
answers with a line when the task is done; so no worker waits for a slow task, and a worker whose parent has
ended ends after its task. What a worker prints goes to the stage's log.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Final

from collidium_plugins.acts_pipeline.order import StageFailed

_DONE: Final = "done\n"

Do = Callable[[int], None]


def run(
    tasks: Sequence[int],
    do: Do,
    arguments: Sequence[str],
    processes: int,
    report: Callable[[int], None],
) -> None:
    """Do every task, here or in ``processes`` workers started with ``arguments``; ``report`` each one done.

    Raises StageFailed when a worker ends before its tasks. Workers never outlive the call.
    """
    if processes == 1 or len(tasks) <= 1:
        for task in tasks:
            do(task)
            report(task)
        return
    workers = [_start(arguments) for _ in range(min(processes, len(tasks)))]
    waiting = iter(list(tasks))  # a list's iterator gives each task to one thread
    try:
        with ThreadPoolExecutor(len(workers)) as threads:
            fed = [threads.submit(_feed, worker, waiting, report) for worker in workers]
            try:
                wait(fed, return_when=FIRST_EXCEPTION)
            finally:
                _end(workers)  # after a failure the threads still wait for answers
            for one in fed:
                one.result()
    finally:
        _end(workers)


def serve(do: Do) -> None:
    """Do the tasks read from standard input, in a worker."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # C++ prints to standard output, too
    for line in sys.stdin:
        do(int(line))
        answers.write(_DONE)
        answers.flush()


def _start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # this program, with the arguments that it was given
        [sys.executable, "-m", str(__package__), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def _feed(worker: subprocess.Popen[str], waiting: Iterator[int], report: Callable[[int], None]) -> None:
    assert worker.stdin is not None  # noqa: S101  # both are pipes
    assert worker.stdout is not None  # noqa: S101 -- a pipe
    for task in waiting:
        try:
            worker.stdin.write(f"{task}\n")
            answered = worker.stdout.readline()
        except OSError:
            answered = ""
        if answered != _DONE:
            raise StageFailed(f"a worker process ended with exit code {worker.wait()}: see above")
        report(task)


def _end(workers: Sequence[subprocess.Popen[str]]) -> None:
    """Stop what still runs; nothing happens the second time."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait()
