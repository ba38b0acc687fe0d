"""A stranger's task, installed by pip beside the platform, becomes a benchmark; the core stays as it is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.documents import ROOT
from tests.virtual_environments import VirtualEnvironment

from collidium.client import Client
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.conformance import check_task
from collidium.testing.server import ServerProcess

EXAMPLE = ROOT / "examples/collidium-task-multiplicity"
#: Of events 3 and 4: particles with three hits or more.
TRUE_COUNTS = [87, 72]


@pytest.fixture
def venv(tmp_path: Path) -> VirtualEnvironment:
    return VirtualEnvironment.make(tmp_path / "venv")


@pytest.fixture
def platform(venv: VirtualEnvironment, migrated_database_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    """The platform of that environment, not yet started."""
    program = [str(venv.programs / "python"), "-m", "collidium"]
    with closing(ServerProcess(tmp_path / "server", migrated_database_url, program=program)) as server:
        yield server


def ask(platform: ServerProcess, *arguments: str) -> Any:
    done = platform.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tasks(platform: ServerProcess) -> dict[str, Any]:
    return {task["name"]: task for task in ask(platform, "task", "list")}


def test_a_task_is_installed_listed_and_scored(
    venv: VirtualEnvironment, platform: ServerProcess, tmp_path: Path
) -> None:
    assert "multiplicity" not in tasks(platform)
    subprocess.run(
        [venv.programs / "pip", "install", "--quiet", str(EXAMPLE)],
        check=True,
        env=venv.environment(tmp_path),
    )
    task = tasks(platform)["multiplicity"]
    assert (task["installed"], task["listed"]) == (True, False)
    assert task["distribution"] == "collidium-task-multiplicity"

    events = str(EVENTS_DIRECTORY)
    ask(platform, "truth", "import", "multiplicity", "--from", events, "--events", "3:5")
    ask(platform, "task", "add", "multiplicity")
    platform.start()
    predictions = tmp_path / "predictions.parquet"
    pq.write_table(pa.table({"event_id": [3, 4], "particles": [TRUE_COUNTS[0] + 1, 0]}), predictions)
    with Client(platform.base_url, platform.add_user("anna")) as client:
        receipt = client.submit("multiplicity", predictions)
        assert receipt.scores == {"within_ten_percent": 0.5, "mean_error": (1 + TRUE_COUNTS[1]) / 2}
        assert receipt.credits_earned == 5
        (place,) = client.leaderboard("multiplicity")
        assert (place.rank, place.hub_username, place.scores) == (1, "anna", receipt.scores)
        assert client.me().credits == 15


def test_the_example_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    task = import_module("collidium_task_multiplicity").Multiplicity()
    hits = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet")
    assert check_task(task, {"tracker_hits": hits}) == {"within_ten_percent": 0.2, "mean_error": 13.2}
