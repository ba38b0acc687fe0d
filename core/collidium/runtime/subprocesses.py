"""Commands, each in a session of its own, and what a process asks of its kernel for itself (prctl(2))."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_libc: Final = ctypes.CDLL(None)


def run(
    words: Sequence[str],
    seconds: float | None,
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and read what it writes.

    An interrupt at the terminal does not reach it. Raises subprocess.TimeoutExpired where it, or a process
    that has its output, goes on for more than ``seconds``, and OSError where it cannot be started. After
    any error nothing of its session is left.
    """
    with subprocess.Popen(  # noqa: S603 -- a list of words, never a shell
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        cwd=directory,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            printed, complaint = process.communicate(timeout=seconds)
        except BaseException:
            signal_group(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(words, process.returncode, printed, complaint)


def end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """End a process that leads a session, by force after ``seconds``, and all that is left of the session."""
    try:
        if process.poll() is None:
            signal_group(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        process.wait()


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if any of it is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


# -- what is asked of the kernel; other systems than Linux go without -----------------------------------


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent, whose id that is, ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before this was set
        os.kill(os.getpid(), signal.SIGKILL)


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory and initial environment."""
    prctl(_PR_SET_DUMPABLE, 0)


def prctl(option: int, value: int) -> None:
    """Ask the kernel something about this process; other systems than Linux go without."""
    if sys.platform == "linux":
        _libc.prctl(option, value, 0, 0, 0)
