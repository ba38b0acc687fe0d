"""Processes of this machine, found in /proc and distinguished from others with the same id."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PROC: Final = Path("/proc")
#: States of processes that have ended but still have an entry.
_DEAD: Final = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class JobProcess:
    """A process, distinguished from others that had or will have the same id."""

    pid: int
    #: When it started, in clock ticks since the boot.
    start: int
    #: The id of the boot.
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this id now, None if there is none."""
        status = _status(pid)
        return cls(pid, status.start, boot()) if status else None

    @property
    def is_alive(self) -> bool:
        return self.boot == boot() and (status := _status(self.pid)) is not None and self._is(status)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process unless it has ended, even if its id was reused."""
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                # From here on the descriptor refers to the same process.
                if self.is_alive:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)

    def descendants(self) -> list[JobProcess]:
        """Return the children of this process, their children, and so on; none if it has ended."""
        if not self.is_alive:
            return []
        found = {self.pid}
        family: list[JobProcess] = []
        while more := _matching(lambda status: status.parent in found and status.pid not in found):
            family += more
            found.update(process.pid for process in more)
        return family

    def _is(self, status: _Status) -> bool:
        return status.start == self.start and status.state not in _DEAD


def with_variable(name: str, value: str) -> list[JobProcess]:
    """Return the processes with that variable in their initial environment."""
    wanted = f"{name}={value}".encode()
    return _matching(lambda status: wanted in _environment(status.pid).split(b"\0"))


def boot() -> str:
    """Return the id of the current boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True, slots=True)
class _Status:
    pid: int
    state: str
    parent: int
    start: int


def _status(pid: int) -> _Status | None:
    """Return the fields of ``stat`` (proc(5)); None if there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # After the program's name, which may contain anything.
    words = text.rpartition(")")[2].split()
    return _Status(pid, state=words[0], parent=int(words[1]), start=int(words[19]))


def _environment(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "environ").read_bytes()
    except OSError:  # it has ended, or belongs to another user
        return b""


def _matching(wanted: Callable[[_Status], bool]) -> list[JobProcess]:
    here = boot()
    return [
        JobProcess(status.pid, status.start, here)
        for status in _all()
        if wanted(status) and status.state not in _DEAD
    ]


def _all() -> Iterator[_Status]:
    for folder in PROC.iterdir():
        if folder.name.isdecimal() and (status := _status(int(folder.name))):
            yield status
