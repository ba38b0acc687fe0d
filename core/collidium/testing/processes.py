"""Child processes that never outlive the tests that started them."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from signal import SIGKILL
from time import monotonic
from typing import Protocol

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent() -> None:
    """For ``preexec_fn``: the kernel ends the child when the test run dies, even by SIGKILL (Linux)."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, SIGKILL)


class Process(Protocol):
    """What tests use of ``subprocess.Popen``."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


def wait_until(
    condition: Callable[[], bool],
    process: Process,
    seconds: float,
    describe: Callable[[], str],
) -> None:
    """Return once ``condition()`` holds.

    Raises RuntimeError with ``describe()`` when ``process`` ends before, TimeoutError after ``seconds``.
    """
    deadline = monotonic() + seconds
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError(f"not ready after {seconds:.0f} s: {describe()}")
        try:
            code = process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        raise RuntimeError(f"ended with exit code {code} before it was ready: {describe()}")
