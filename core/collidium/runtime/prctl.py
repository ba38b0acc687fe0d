"""What a process asks of the Linux kernel for itself (prctl(2)); elsewhere it goes without."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_libc: Final = ctypes.CDLL(None)


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent, whose id that is, ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before this was set
        os.kill(os.getpid(), signal.SIGKILL)


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory and initial environment."""
    _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc.prctl(option, value)
