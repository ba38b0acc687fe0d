"""Commands in sessions of their own, and settings of this process in the kernel (prctl(2))."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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
    """Run a command to its end and return its output.

    An interrupt at the terminal does not reach it. Raises subprocess.TimeoutExpired if the command, or a
    process that inherited its output, runs for more than ``seconds``, and OSError if it cannot be started.
    After any error its whole session is killed.
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
            output, errors = process.communicate(timeout=seconds)
        except BaseException:  # raised again; also Ctrl-C
            signal_group(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Terminate the leader of a session, kill it after ``seconds``, and kill the rest of the session."""
    try:
        if process.poll() is None:
            signal_group(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        process.wait()


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def end_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent, whose process id that is, ends. Linux only."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before this was set
        os.kill(os.getpid(), signal.SIGKILL)


class TiedName(str):
    """The name of a process of multiprocessing that the kernel kills when its parent ends.

    A spawned process reads its name first, before it imports what its main module and its target need, which
    takes seconds on a busy machine.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _tied, (str(self), os.getpid())


def _tied(name: str, parent: int) -> str:
    end_with_parent(parent)
    return name


def hide_memory() -> None:
    """Keep processes of the same user from reading this one's memory and initial environment. Linux only."""
    prctl(_PR_SET_DUMPABLE, 0)


def prctl(option: int, value: int) -> None:
    """Call prctl(2) on Linux."""
    if sys.platform == "linux":
        _libc.prctl(option, value, 0, 0, 0)
