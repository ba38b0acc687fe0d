"""The client that people have already, in an environment of its own; with it comes the `datasets` library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CLIENT = "colliderml[remote,tasks]==0.4.2"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the client is installed with all that it asks for, and nothing of this project."""
    directory = tmp_path_factory.mktemp("client")
    python = str(directory / "bin/python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    done = subprocess.run([*pip, "--disable-pip-version-check", CLIENT], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    yield directory / "bin"
    shutil.rmtree(directory, ignore_errors=True)  # 800 MB, which pytest would keep for three runs
