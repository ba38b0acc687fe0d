"""The ``collidium`` command in a process of its own, as a user runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collidium.testing.server import ServerProcess, run_command

RunCommand = Callable[..., subprocess.CompletedProcess[str]]


class Caller:
    """Runs the command as an account of one server, and as its operator."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.server = server
        self.environment = server.environment | {
            "PLATFORM_BACKEND": server.base_url,
            "HF_TOKEN": server.add_user(name),
            "ADMIN_TOKEN": server.admin_token,
        }

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_command(arguments, self.environment | variables, self.server.directory)

    def data(self, *arguments: str) -> Any:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def on_a_terminal(self, typed: str, *arguments: str) -> tuple[int, str]:
        """Exit code and standard output of a command whose questions are answered with ``typed``."""
        terminal, its_end = pty.openpty()
        try:
            command = subprocess.Popen(
                [sys.executable, "-m", "collidium", *arguments],
                stdin=its_end,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
                cwd=self.server.directory,
                text=True,
            )
            os.write(terminal, f"{typed}\n".encode())
            output, _ = command.communicate(timeout=60)
            return command.returncode, output
        finally:
            os.close(terminal)
            os.close(its_end)


@pytest.fixture
def site(tmp_path: Path, isolated_environment: dict[str, str]) -> Path:
    """A directory for third-party distributions, on the path of every command of the test."""
    path = tmp_path / "site"
    path.mkdir()
    isolated_environment["PYTHONPATH"] = str(path)
    return path


@pytest.fixture
def collidium(isolated_environment: dict[str, str], tmp_path: Path) -> RunCommand:
    """Runs the command on a machine of its own: ``collidium("task", "list", PLATFORM_PORT="1")``."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_command(arguments, isolated_environment | variables, tmp_path)

    return run
