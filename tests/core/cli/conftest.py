"""The ``collidium`` command in a process of its own, as a user runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from collidium.testing.server import run_command

RunCommand = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path, isolated_environment: dict[str, str]) -> Path:
    """A directory for distributions of strangers, on the path of every command of the test."""
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
