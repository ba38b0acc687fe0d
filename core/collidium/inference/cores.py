"""The cores that models run on: one is for those that are timed, for one process of the machine at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from collidium.errors import CollidiumError
from collidium.files.held import lock

#: A directory for each core, which any process can lock, and seconds between two attempts.
_CORES: Final = Path("/sys/devices/system/cpu")
_WAIT_SECONDS: Final = 0.2


class CoreBusy(CollidiumError):
    """Another process of this machine has the core on which models are timed."""


@contextmanager
def timing_core(look: Callable[[], None] | None = None, *, wait: bool = True) -> Iterator[int]:
    """The last core that this process may use, for the context: one process of this machine has it at a time.

    Models are timed there, and no other model runs there if there is another core.

    Parameters
    ----------
    look
        Called while it waits; what it raises ends that.
    wait
        Whether it waits for a process that has the core.

    Raises
    ------
    CoreBusy
        Where it does not wait.
    """
    core = max(os.sched_getaffinity(0))
    descriptor = None
    try:
        with suppress(FileNotFoundError):  # no /sys: there is nothing that all processes can lock
            descriptor = os.open(_CORES / f"cpu{core}", os.O_RDONLY)
        while descriptor is not None and not lock(descriptor):
            if not wait:
                raise CoreBusy("another process times a model")
            if look is not None:
                look()
            time.sleep(_WAIT_SECONDS)
        yield core
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def running_core(look: Callable[[], None] | None) -> Iterator[int]:
    """Any core but that of models that are timed, where there is another one."""
    others = sorted(os.sched_getaffinity(0))[:-1]
    if others:
        yield others[os.getpid() % len(others)]
    else:
        with timing_core(look) as core:
            yield core
