"""Runs ``collidium`` in child processes with default settings, isolated from the user's."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from collidium.errors import CollidiumError
from collidium.runtime import subprocesses

START_SECONDS = 60.0
STOP_SECONDS = 45.0

#: Prefixes of the user's settings, tokens and caches, which the demo does not use.
_PRIVATE = ("PLATFORM_", "HF_", "HUGGING")
_LOOPBACK = "127.0.0.1,localhost"


@dataclass(frozen=True, slots=True)
class DemoMachine:
    """A data directory, and commands that use only its settings."""

    data_dir: Path
    #: Further settings of the server.
    settings: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        """Return the environment without the user's settings and secrets."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith(_PRIVATE) and name.upper() != "ADMIN_TOKEN"
        }
        return kept | {
            "PLATFORM_DATA_DIR": str(self.data_dir),
            "PLATFORM_REWARDS_ON_PUBLIC_TRUTH": "true",
            **self.settings,
            **without_proxy(os.environ),
        }

    def command(self, *arguments: str) -> str:
        """Run ``collidium`` and return its output. Raises CollidiumError if it fails."""
        # In the data directory, so that the user's .env file is not read.
        done = subprocesses.run(
            _collidium(arguments), None, directory=self.data_dir, environment=self.environment()
        )
        if done.returncode:
            raise CollidiumError(f"`collidium {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    @contextmanager
    def server(self, port: int) -> Iterator[tuple[str, str]]:
        """Run ``collidium serve``, and yield its URL and that of its hub when it is ready."""
        log = self.data_dir / "server.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 -- ourselves
                _collidium(["serve", "--port", str(port)]),
                env=self.environment(),
                cwd=self.data_dir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        try:
            yield _urls(process, log)
        finally:
            _end(process)


def without_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that exempt this machine from proxies."""
    known = environment.get("no_proxy") or environment.get("NO_PROXY")
    exempt = f"{known},{_LOOPBACK}" if known else _LOOPBACK
    return {"NO_PROXY": exempt, "no_proxy": exempt}


def _collidium(arguments: Sequence[str]) -> list[str]:
    # -P, so that no module is imported from the working directory.
    return [sys.executable, "-P", "-m", "collidium", *arguments]


def _urls(process: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    """Return the addresses in the server's first two lines. Raises CollidiumError if there are none."""
    assert process.stdout is not None  # noqa: S101 -- a pipe, see above
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        ready = selector.select(START_SECONDS)
    lines = [process.stdout.readline().decode() for _ in range(2)] if ready else []
    if not all(lines) or not lines:
        raise CollidiumError(f"the server did not start: {_reason(log)}")
    url, hub = (line.split()[-1] for line in lines)
    return url, hub


def _reason(log: Path) -> str:
    """Return the error in the server's log, or its last line."""
    lines = log.read_text(errors="replace").strip().splitlines()
    errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return (errors or lines or ["its log is empty"])[-1]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
