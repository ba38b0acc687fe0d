"""Child processes of tests: without settings, tokens and caches of the caller, and ended with the tests."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Protocol

from collidium.runtime import subprocesses


def end_with_parent() -> None:
    """In a process just forked: the kernel ends it when its parent dies, even by SIGKILL (Linux)."""
    subprocesses.end_with_parent(os.getppid())


def ending_with_parent(command: Sequence[str]) -> list[str]:
    """The command of a process that the kernel ends when the test run dies, even by SIGKILL (Linux).

    A ``preexec_fn`` would fork a process of many threads: what waits for a lock that one of them holds at
    that moment waits for ever, and holds the interpreter meanwhile.
    """
    setpriv = shutil.which("setpriv")
    return [*((setpriv, "--pdeathsig", "KILL") if setpriv else ()), *command]


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


def members(group: int) -> list[int]:
    """The processes of a group, those included that have ended and were not reaped (Linux)."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[2]) == group:
                found.append(int(file.parent.name))
    return found


def wait_for_group(group: int) -> None:
    """Return once all threads of the processes of a group have ended, and what they held is free (Linux)."""
    for pid in members(group):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                ended.poll()
            finally:
                os.close(descriptor)


#: Settings, tokens and caches of the person who runs the tests.
_PRIVATE_PREFIXES = ("PLATFORM_", "AWS_", "HF_", "HUGGING", "XDG_", "COLLIDERML_", "PG")
_PRIVATE_NAMES = frozenset({"ADMIN_TOKEN"})
#: Loopback never goes through the caller's proxy.
_LOOPBACK = "127.0.0.1,localhost,::1"


def is_private(name: str) -> bool:
    """Whether the environment variable may carry the caller's own settings into a test."""
    upper = name.upper()
    return upper in _PRIVATE_NAMES or upper.startswith(_PRIVATE_PREFIXES)


def isolated_environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without anything private, with its home in ``home``, plus ``extra``."""
    kept = {name: value for name, value in os.environ.items() if not is_private(name)}
    return kept | {
        "HOME": str(home),
        "HF_HOME": str(home / "huggingface"),
        "NO_PROXY": _LOOPBACK,
        "no_proxy": _LOOPBACK,
        **(extra or {}),
    }
