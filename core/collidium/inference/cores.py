"""Assigns CPU cores to models. One core is reserved for timing, for one process of the machine at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from collidium.errors import CollidiumError
from collidium.files.held import lock

#: Has a directory for each core, which any process can lock.
_CORES: Final = Path("/sys/devices/system/cpu")
#: Time between two attempts to lock a core.
_WAIT_SECONDS: Final = 0.2


class CoreBusy(CollidiumError):
    """Another process of this machine holds the core for timing."""


@contextmanager
def timing_core(on_wait: Callable[[], None] | None = None, *, wait: bool = True) -> Iterator[int]:
    """Hold the core for timing, the last that this process may use, within the context.

    Only one process of the machine holds it at a time. Other models run there only if it is the only core.

    Parameters
    ----------
    on_wait
        Called repeatedly while waiting; an exception ends the wait.
    wait
        Whether to wait for a process that holds the core.

    Raises
    ------
    CoreBusy
        If another process holds the core and ``wait`` is False.
    """
    core = max(os.sched_getaffinity(0))
    descriptor = None
    try:
        with suppress(FileNotFoundError):  # without /sys there is no lock
            descriptor = os.open(_CORES / f"cpu{core}", os.O_RDONLY)
        while descriptor is not None and not lock(descriptor):
            if not wait:
                raise CoreBusy("another process times a model")
            if on_wait is not None:
                on_wait()
            time.sleep(_WAIT_SECONDS)
        yield core
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def running_core(on_wait: Callable[[], None] | None) -> Iterator[int]:
    """Provide any core except that for timing, unless it is the only one."""
    others = sorted(os.sched_getaffinity(0))[:-1]
    if others:
        yield others[os.getpid() % len(others)]
    else:
        with timing_core(on_wait) as core:
            yield core
