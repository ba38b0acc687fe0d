"""Standalone pages, as ``collidium web`` serves them."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from collidium.testing.processes import ending_with_parent, isolated_environment
from collidium.testing.server import COLLIDIUM


@dataclass
class Pages:
    """Pages that are served, and the process that serves them."""

    base_url: str
    process: subprocess.Popen[str]
    directory: Path

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> str:
        return (self.directory / "web.log").read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def served_apart(
    directory: Path, backend: str, *, port: int = 0, env: Mapping[str, str] | None = None
) -> Iterator[Pages]:
    """``collidium web`` on a port of loopback; ended when the context is."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = {"PLATFORM_DATA_DIR": str(directory / "data")} | dict(env or {})
    with (directory / "web.log").open("wb") as log:
        process = subprocess.Popen(
            ending_with_parent([*COLLIDIUM, "web", "--backend", backend, "--port", str(port)]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=directory,
            env=isolated_environment(directory, settings),
        )
    assert process.stdout is not None
    try:
        found = re.search(r"(http://\S+)\s*\Z", process.stdout.readline())
        assert found is not None, (directory / "web.log").read_text()
        yield Pages(found[1], process, directory)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def peak_kib(pid: int) -> int:
    """The most memory that a process ever had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])
