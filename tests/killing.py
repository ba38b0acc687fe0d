"""Kills scoring workers and models of a process, as the kernel does when memory is short."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

_SCRIPT: Final = b"scoring_worker.py"
_MODEL: Final = b"inference/worker.py"
#: Interval of looks for workers.
_LOOK_SECONDS: Final = 0.002


class Killer:
    """Kills up to ``count`` processes of those that ``find`` finds, each once, while the context lasts."""

    def __init__(
        self, process: int, count: float = 1, *, find: Callable[[int], list[int]] | None = None
    ) -> None:
        self._process = process
        self._count = count
        self._find = find or workers
        self.killed: set[int] = set()
        self._stopped = Event()
        self._thread = Thread(target=self._kill, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _kill(self) -> None:
        while len(self.killed) < self._count and not self._stopped.wait(_LOOK_SECONDS):
            for worker in self._find(self._process):
                if worker not in self.killed and len(self.killed) < self._count:
                    with suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
                        self.killed.add(worker)


def workers(process: int) -> list[int]:
    """The scoring workers of a process and its children, without their supervisors."""
    found, pending = [], [(process, False)]
    while pending:
        parent, supervises = pending.pop()
        for child in _children(parent):
            with suppress(OSError):
                is_worker = _SCRIPT in Path(f"/proc/{child}/cmdline").read_bytes()
                if is_worker and supervises:
                    found.append(child)
                else:
                    pending.append((child, is_worker))
    return found


def models(process: int) -> list[int]:
    """The sandboxes of a process that are confined, so that each has a model or gets one."""
    found = []
    for child in _children(process):
        with suppress(OSError):
            is_model = _MODEL in Path(f"/proc/{child}/cmdline").read_bytes()
            if is_model and "Seccomp:\t2" in Path(f"/proc/{child}/status").read_text():
                found.append(child)
    return found


def _children(process: int) -> list[int]:
    found = []
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found
