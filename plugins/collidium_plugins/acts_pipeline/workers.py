"""Distributes the tasks of a stage over worker processes.

A worker is this program, started again. It reads one task number per line from standard input and writes a
line when the task is done. A worker exits when its input is closed, so it does not outlive its parent. Its
other output goes to the stage's log.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Final

from collidium_plugins.acts_pipeline.order import StageError

_DONE: Final = "done\n"

Do = Callable[[int], None]


def run(
    tasks: Sequence[int],
    do: Do,
    arguments: Sequence[str],
    processes: int,
    report: Callable[[int], None],
) -> None:
    """Run every task, here or in ``processes`` workers started with ``arguments``; ``report`` each task done.

    Raises StageFailed when a worker exits before its task is done. No worker outlives the call.
    """
    if processes == 1 or len(tasks) <= 1:
        for task in tasks:
            do(task)
            report(task)
        return
    workers = [_start(arguments) for _ in range(min(processes, len(tasks)))]
    waiting = iter(list(tasks))  # list iterators are thread-safe: each task goes to one worker
    try:
        with ThreadPoolExecutor(len(workers)) as threads:
            feeding = [threads.submit(_feed, worker, waiting, report) for worker in workers]
            try:
                wait(feeding, return_when=FIRST_EXCEPTION)
            finally:
                _terminate(workers)  # unblocks threads that wait for replies
            for future in feeding:
                future.result()
    finally:
        _terminate(workers)


def serve(do: Do) -> None:
    """Run the tasks read from standard input, in a worker."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # C++ libraries print to standard output
    for line in sys.stdin:
        do(int(line))
        replies.write(_DONE)
        replies.flush()


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
            reply = worker.stdout.readline()
        except OSError:
            reply = ""
        if reply != _DONE:
            raise StageError(f"a worker process ended with exit code {worker.wait()}: see above")
        report(task)


def _terminate(workers: Sequence[subprocess.Popen[str]]) -> None:
    """Stop workers that still run; idempotent."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait()
