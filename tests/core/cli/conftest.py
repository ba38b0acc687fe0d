"""Runs the ``collidium`` command in a process, as a user does."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collidium.testing.server import COLLIDIUM, ServerProcess, run_command


@dataclass(slots=True)
class RunCommand:
    """Runs the command in an environment and directory: ``collidium("task", "list", PLATFORM_PORT="1")``."""

    environment: dict[str, str]
    directory: Path

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_command(arguments, self.environment | variables, self.directory)

    def data(self, *arguments: str) -> Any:
        """What the command prints with ``--json``."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def on_a_terminal(self, typed: str, *arguments: str) -> tuple[int, str]:
        """Exit code and standard output of a command whose questions are answered with ``typed``."""
        terminal, its_end = pty.openpty()
        try:
            command = subprocess.Popen(
                [*COLLIDIUM, *arguments],
                stdin=its_end,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
                cwd=self.directory,
                text=True,
            )
            os.write(terminal, f"{typed}\n".encode())
            output, _ = command.communicate(timeout=60)
            return command.returncode, output
        finally:
            os.close(terminal)
            os.close(its_end)

    def terminal_output(self, *arguments: str, prompt: str = "", typed: str = "") -> str:
        """What a command that succeeds shows on a terminal; ``typed`` after the prompt."""
        terminal, its_end = pty.openpty()
        with closing(os.fdopen(terminal, "r+b", buffering=0)) as screen:
            command = subprocess.Popen(
                [*COLLIDIUM, *arguments],
                stdin=its_end,
                stdout=its_end if prompt else subprocess.DEVNULL,
                stderr=its_end,
                env=self.environment | {"TERM": "xterm", "COLUMNS": "120"},
                cwd=self.directory,
                start_new_session=True,
            )
            os.close(its_end)
            shown = b""
            # Read as it comes: a full terminal would stop the command.
            with suppress(OSError):  # when the command closes the other end
                while True:
                    shown += screen.read(4096)
                    if typed and shown.endswith(prompt.encode()):
                        screen.write(f"{typed}\n".encode())
                        typed = ""
            assert command.wait(60) == 0, shown
            return shown.decode()


class Caller(RunCommand):
    """Runs the command as an account of one server, and as its operator."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.server = server
        callers = {
            "PLATFORM_BACKEND": server.base_url,
            "HF_TOKEN": server.add_user(name),
            "ADMIN_TOKEN": server.admin_token,
        }
        super().__init__(server.environment | callers, server.directory)


@pytest.fixture
def site(tmp_path: Path, isolated_environment: dict[str, str]) -> Path:
    """A directory for third-party distributions, on the path of every command of the test."""
    path = tmp_path / "site"
    path.mkdir()
    isolated_environment["PYTHONPATH"] = str(path)
    return path


@pytest.fixture
def collidium(isolated_environment: dict[str, str], tmp_path: Path) -> RunCommand:
    """Runs the command on a machine of its own."""
    return RunCommand(isolated_environment, tmp_path)
