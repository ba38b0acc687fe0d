"""Child processes of tests, which lack the caller's settings, tokens and caches, and end with the tests."""

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
    """Let the kernel end this process when its parent dies, even by SIGKILL (Linux)."""
    subprocesses.end_with_parent(os.getppid())


def ending_with_parent(command: Sequence[str]) -> list[str]:
    """Wrap a command such that the kernel ends it when the test run dies, even by SIGKILL (Linux).

    This is not a ``preexec_fn`` because that can deadlock in a process with threads.
    """
    setpriv = shutil.which("setpriv")
    return [*((setpriv, "--pdeathsig", "KILL") if setpriv else ()), *command]


class Process(Protocol):
    """The part of ``subprocess.Popen`` that tests use."""

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
    """Wait until ``condition()`` is true.

    Raises RuntimeError with the end of ``describe()`` if ``process`` ends before, and TimeoutError after
    ``seconds``.
    """
    deadline = monotonic() + seconds
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError(f"not ready after {seconds:.0f} s: {describe()[-4000:]}")
        try:
            code = process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        raise RuntimeError(f"ended with exit code {code} before it was ready: {describe()[-4000:]}")


def members(group: int) -> list[int]:
    """The processes of a group, including zombies (Linux)."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[2]) == group:
                found.append(int(file.parent.name))
    return found


def wait_for_group(group: int) -> None:
    """Wait until all processes of a group have ended and released their resources (Linux)."""
    for pid in members(group):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                ended.poll()
            finally:
                os.close(descriptor)


#: Environment variables with settings, tokens and caches of the user.
_PRIVATE_PREFIXES = ("ADMIN_TOKEN", "PLATFORM_", "AWS_", "HF_", "HUGGING", "XDG_", "COLLIDERML_", "PG")
#: Addresses for which the caller's proxy is not used.
_LOOPBACK = "127.0.0.1,localhost,::1"


def isolated_environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without private variables, with the home ``home`` and ``extra`` variables."""
    kept = {
        name: value for name, value in os.environ.items() if not name.upper().startswith(_PRIVATE_PREFIXES)
    }
    return kept | {
        "HOME": str(home),
        "HF_HOME": str(home / "huggingface"),
        "NO_PROXY": _LOOPBACK,
        "no_proxy": _LOOPBACK,
        **(extra or {}),
    }
