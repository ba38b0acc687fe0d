"""A real server in a separate process: ``python -m collidium serve`` on a free port of loopback."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from collidium.files.data_directory import make_private_file
from collidium.settings import SQLITE_FILE
from collidium.testing.databases import required_settings, sqlite_url
from collidium.testing.fork_server import fork_server
from collidium.testing.processes import (
    Process,
    ending_with_parent,
    isolated_environment,
    wait_for_group,
    wait_until,
)

#: The command ``collidium``, run by the interpreter of the test.
COLLIDIUM = (sys.executable, "-m", "collidium")

_URL = re.compile(r"https?://[^\s/]+")
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_COMMAND_SECONDS = 300.0


class ServerProcess:
    """A server as a user starts it; a context manager that ends it with all of its processes.

    ``directory`` gets the data directory, the home of the isolated environment and the server's output.
    ``env`` are settings by their full names, for example ``{"PLATFORM_WORKERS": "2"}``; ``program`` is the
    command ``collidium``. By default one process scores, because starting one takes longer than scoring the
    predictions of a test. A stopped or killed server can be started again on the same data. Without
    ``database_url`` and another ``program``, the first start finds a migrated database in the data directory,
    which saves 1.5 s.
    """

    #: Address of the server; empty until it has started.
    base_url: str = ""
    #: Address of the local hub on a separate port; empty if it has none.
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

    # -- start and stop -------------------------------------------------------------------------------

    def start(self, *options: str, port: int = 0) -> None:
        """Start the server with ``options`` of ``collidium serve``, and wait until it is ready.

        If ``port`` is given, the hub has no separate port, because the next port may be in use.
        """
        command = [*self.program, "serve", "--port", str(port), *options]
        environment = ({"PLATFORM_HUB_PORT": "0"} if port else {}) | self.environment
        if self.program == COLLIDIUM and "PLATFORM_DATABASE_URL" not in environment:
            _provide_database(Path(environment["PLATFORM_DATA_DIR"]))
        with self._output.open("wb") as output, self._errors.open("ab") as errors:
            self._process = start_process(command, environment, self.directory, output, errors)
        try:
            wait_until(self._announced, self._process, _START_SECONDS, self.log)
            wait_until(self._ready, self._process, _START_SECONDS, self.log)
        except BaseException:  # including KeyboardInterrupt
            self.kill()
            raise

    def stop(self) -> int:
        """Stop the server by SIGTERM and return its exit code."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(_STOP_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the server and its workers by SIGKILL, as a power failure does, and wait for them."""
        process = self._running()
        with suppress(ProcessLookupError):  # the whole group has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_for_group(process.pid)

    def close(self) -> None:
        """Kill the server if it is running."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def pid(self) -> int:
        return self._running().pid

    # -- use ------------------------------------------------------------------------------------------

    @property
    def admin_token(self) -> str:
        """The operators' token: the configured or the generated one."""
        configured = self.environment.get("ADMIN_TOKEN")
        return configured or (self.data_dir / "admin-token").read_text().strip()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``collidium`` with these arguments on this server and its data, whatever its exit code."""
        backend = {"PLATFORM_BACKEND": self.base_url} if self.base_url else {}
        environment = self.environment | backend
        return run_command(arguments, environment, self.directory, self.program)

    def add_user(self, name: str) -> str:
        """Create an account on the local hub and return its token."""
        done = self.run("user", "add", name)
        if done.returncode != 0:
            raise RuntimeError(f"collidium user add {name} failed: {done.stderr}")
        return done.stdout.strip().splitlines()[-1]

    def log(self) -> str:
        """What the server has printed since its last start, then what all its starts have logged."""
        files = [file for file in (self._output, self._errors) if file.exists()]
        return "\n".join(file.read_text(errors="replace") for file in files)

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
        """Read the addresses, which the server prints when it listens."""
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
        # Only the database: a test may have an unreachable storage.
        return bool(answer.json().get("database") == "ok")


def _provide_database(data_dir: Path) -> None:
    """Put a migrated database into a data directory that has none."""
    path = data_dir / SQLITE_FILE
    if not path.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private_file(path)
        shutil.copyfile(_migrated_database(), path)


@cache
def _migrated_database() -> Path:
    """A database with the platform's schema, to be copied; migrated once per process."""
    directory = Path(tempfile.mkdtemp(prefix="collidium-template-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = directory / "template.sqlite3"
    environment = isolated_environment(directory, {"PLATFORM_DATABASE_URL": sqlite_url(path)})
    run_command(("db", "migrate"), environment, directory).check_returncode()
    return path


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    program: Sequence[str] = COLLIDIUM,
) -> subprocess.CompletedProcess[str]:
    """Run ``collidium`` with these arguments in ``directory``."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = start_process([*program, *arguments], environment, directory, output, errors)
        try:
            code = process.wait(_COMMAND_SECONDS)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        written = [_content(file) for file in (output, errors)]
    return subprocess.CompletedProcess([*program, *arguments], code, *written)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def start_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    output: IO[bytes],
    errors: IO[bytes],
) -> Process:
    """Start a command in a new session, by the much faster fork server if possible."""
    words = 2 if command[1] == "-m" else 1  # before the module or the script, unless there are options
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
