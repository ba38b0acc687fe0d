"""The local hub at its own port with old and new versions of ``huggingface_hub``, each in a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.hub import token_on

from collidium.testing.processes import isolated_environment
from collidium.testing.server import ServerProcess

SCRIPT = Path(__file__).with_name("hub_client_script.py")
SCENARIOS = ("smoke", "large", "settings", "move", "access", "listings", "branches", "unsupported")
#: Before 1.2 the client knows no endpoint with a path.
OLDER = ("0.36.2", "1.0.1")
#: The one that the tests run with: the newest, but where minimum versions are tested.
INSTALLED = "installed"

#: What each scenario raised, if anything: by version, scenarios, and more of the environment.
Run = Callable[..., dict[str, str | None]]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("platform")) as server:
        token_on(server.data_dir / "hub", "grace")
        yield server


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The Python that has a version of the client, installed when it is first asked for."""

    @cache
    def install(version: str) -> str:
        if version == INSTALLED:
            return sys.executable
        directory = tmp_path_factory.mktemp("client")
        python = str(directory / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
        done = subprocess.run(
            [*pip, "--disable-pip-version-check", f"huggingface_hub=={version}"],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return python

    return install


@pytest.fixture(scope="module")
def run(
    platform: ServerProcess, interpreter: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Run:
    token = token_on(platform.data_dir / "hub", "ada")
    runs = iter(range(1000))

    @cache
    def call(version: str, *scenarios: str, xet: bool = False) -> dict[str, str | None]:
        home = tmp_path_factory.mktemp("home")
        variables = {
            "HF_ENDPOINT": platform.hub_url,
            "HF_TOKEN": token,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        } | ({} if xet else {"HF_HUB_DISABLE_XET": "1"})
        done = subprocess.run(
            [interpreter(version), str(SCRIPT), f"run{next(runs)}", str(home / "files"), *scenarios],
            env=isolated_environment(home, variables),
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        raised: dict[str, str | None] = json.loads(done.stdout)
        assert set(raised) == set(scenarios)
        return raised

    return call


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_newest_client(run: Run, scenario: str) -> None:
    raised = run(INSTALLED, *SCENARIOS)[scenario]
    assert raised is None, raised


@pytest.mark.parametrize("version", OLDER)
def test_older_client_smoke(run: Run, version: str) -> None:
    """Where older clients fail at an endpoint with a path; Xet, which they offer, is not taken."""
    for scenario, raised in run(version, "smoke", "xet", xet=True).items():
        assert raised is None, f"{scenario}: {raised}"


def test_newest_client_where_the_hub_has_nothing(run: Run) -> None:
    raised = run(INSTALLED, "absent")["absent"]
    assert raised is None, raised


@pytest.mark.parametrize("version", [INSTALLED, "1.20.1"])
def test_client_uploads_by_xet(platform: ServerProcess, run: Run, version: str) -> None:
    xorbs = platform.data_dir / "hub/uploads/xet"
    before = set(xorbs.glob("*/*/*"))
    raised = run(version, "xet", xet=True)["xet"]
    assert raised is None, raised
    assert set(xorbs.glob("*/*/*")) > before


@pytest.mark.long
@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_older_client(run: Run, version: str, scenario: str) -> None:
    raised = run(version, *SCENARIOS, xet=True)[scenario]
    assert raised is None, raised
