"""The client that people have already, in an environment of its own; with it comes the `datasets` library."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.virtual_environments import VirtualEnvironment

CLIENT = "colliderml[remote,tasks]==0.4.2"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the client is installed with what it asks for, as far as it is not installed here."""
    venv = VirtualEnvironment.make(tmp_path_factory.mktemp("client") / "venv")
    pip = [venv.programs / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run([*pip, CLIENT], check=False, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return venv.programs
