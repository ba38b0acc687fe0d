"""A real server in a process of its own: ``python -m collidium serve`` on a free port of loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from collidium.testing.databases import required_settings
from collidium.testing.fork_server import fork_server
from collidium.testing.processes import (
    Process,
    ending_with_parent,
    isolated_environment,
    wait_for_group,
    wait_until,
)

#: How a test calls the command: on the interpreter that runs the test.
COLLIDIUM = (sys.executable, "-m", "collidium")

_URL = re.compile(r"https?://[^\s/]+")
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_COMMAND_SECONDS = 300.0


class ServerProcess:
    """The platform as a user starts it; a context manager that ends it with everything it started.

    ``directory`` gets the data directory, the home of the isolated environment and the server's output.
    ``env`` are settings by their full names, for example ``{"PLATFORM_WORKERS": "2"}``; ``program`` is how
    ``collidium`` is called. One process scores, where ``env`` says nothing else: to start one takes longer
    than a test's predictions do. A stopped or killed server can be started again on the same data.
    """

    #: Where it listens; empty until it was started.
    base_url: str = ""
    #: Where its hub is at the root of a port of its own; empty where it has none.
    hub_url: str = ""

    def __init__(
        self,
        directory: Path,
        database_url: str | None = None,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = COLLIDIUM,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.program = program
        self.data_dir = directory / "data"
        self.environment = isolated_environment(
            directory,
            {"PLATFORM_DATA_DIR": str(self.data_dir), "PLATFORM_SCORING_WORKERS": "1"}
            | (
                {"PLATFORM_DATABASE_URL": database_url, **required_settings(database_url)}
                if database_url
                else {}
            )
            | dict(env or {}),
        )
        self._process: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- life -----------------------------------------------------------------------------------------

    def start(self, *options: str, port: int = 0) -> None:
        """Start it and return when it is ready; ``options`` go to ``collidium serve``.

        Where ``port`` is given, the hub has no port of its own: the next one may be taken.
        """
        command = [*self.program, "serve", "--port", str(port), *options]
        environment = ({"PLATFORM_HUB_PORT": "0"} if port else {}) | self.environment
        with self._output.open("wb") as output, self._errors.open("ab") as errors:
            self._process = start_process(command, environment, self.directory, output, errors)
        try:
            wait_until(self._announced, self._process, _START_SECONDS, self.log)
            wait_until(self._ready, self._process, _START_SECONDS, self.log)
        except BaseException:  # also Ctrl-C leaves nothing running behind
            self.kill()
            raise

    def stop(self) -> int:
        """Ask it to end (SIGTERM), as an operator or a machine does, and return its exit code."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(_STOP_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it and its workers at once (SIGKILL), as a power cut does; none is left when it returns."""
        process = self._running()
        with suppress(ProcessLookupError):  # raised when the whole group has ended already
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_for_group(process.pid)

    def close(self) -> None:
        """End it if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def pid(self) -> int:
        return self._running().pid

    # -- what a test asks of it -----------------------------------------------------------------------

    @property
    def admin_token(self) -> str:
        """The operators' secret: as configured, else the one that the server made."""
        configured = self.environment.get("ADMIN_TOKEN")
        return configured or (self.data_dir / "admin-token").read_text().strip()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``collidium`` with these arguments on this server and its data; the caller checks the code."""
        backend = {"PLATFORM_BACKEND": self.base_url} if self.base_url else {}
        environment = self.environment | backend
        return run_command(arguments, environment, self.directory, self.program)

    def add_user(self, name: str) -> str:
        """Make an account on the local hub and return its token."""
        done = self.run("user", "add", name)
        if done.returncode != 0:
            raise RuntimeError(f"collidium user add {name} failed: {done.stderr}")
        return done.stdout.strip().splitlines()[-1]

    def log(self) -> str:
        """The end of what the server wrote, for messages."""
        files = [file for file in (self._output, self._errors) if file.exists()]
        return "\n".join(file.read_text(errors="replace")[-4000:] for file in files)

    # -- inside ---------------------------------------------------------------------------------------

    @property
    def _output(self) -> Path:
        return self.directory / "server.out"

    @property
    def _errors(self) -> Path:
        return self.directory / "server.log"

    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError("the server was not started")
        return self._process

    def _announced(self) -> bool:
        """What it prints are its addresses, which were not known before (port 0)."""
        printed = self._output.read_text()
        found = _URL.findall(printed)
        if not printed.endswith("\n") or not found:
            return False
        self.base_url, self.hub_url = found[0], "".join(found[1:])
        return True

    def _ready(self) -> bool:
        try:
            answer = httpx.get(f"{self.base_url}/readyz", timeout=5, trust_env=False)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    program: Sequence[str] = COLLIDIUM,
) -> subprocess.CompletedProcess[str]:
    """Run ``collidium`` with these arguments as a user would, in ``directory``."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = start_process([*program, *arguments], environment, directory, output, errors)
        try:
            code = process.wait(_COMMAND_SECONDS)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        written = [_whole(file) for file in (output, errors)]
    return subprocess.CompletedProcess([*program, *arguments], code, *written)


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def start_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    output: IO[bytes],
    errors: IO[bytes],
) -> Process:
    """Start it in a session of its own: forked where that is the same, because it is much cheaper."""
    words = 2 if command[1] == "-m" else 1  # before the module or the script, if there are no options
    program, arguments = command[words], command[words + 1 :]
    if command[0] == sys.executable and not program.startswith("-") and sys.platform == "linux":
        forked = fork_server().start(arguments, environment, directory, output, errors, program)
        if forked is not None:
            return forked
    return subprocess.Popen(
        ending_with_parent(command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        cwd=directory,
        env=dict(environment),
        start_new_session=True,
    )
