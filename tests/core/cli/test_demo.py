"""``collidium demo``: the whole loop, as the README's first command runs it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from tests.core.cli.conftest import RunCommand
from tests.waiting import eventually

from collidium import plugins
from collidium.demo.loop import LOCAL, MOCK, choose_runner
from collidium.errors import ConfigurationError
from collidium.testing.fork_server import ForkedProcess, fork_server

StartDemo = Callable[..., tuple[ForkedProcess, Path, Path]]

SIMULATES_HERE = sys.platform == "linux" and all(map(find_spec, ("acts", "pythia8mc")))


@pytest.fixture
def scratch(isolated_environment: dict[str, str], tmp_path: Path) -> Path:
    """Where temporary directories of the command are made."""
    path = tmp_path / "scratch"
    path.mkdir()
    isolated_environment["TMPDIR"] = str(path)
    return path


#: What `collidium demo` chooses here by itself is run by the README's test, too.
RUNNERS = ["mock", pytest.param("local", marks=pytest.mark.long)] if SIMULATES_HERE else ["mock"]


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_demo_scores_orders_pays_and_leaves_nothing(
    start_demo: StartDemo, scratch: Path, tmp_path: Path, runner: str
) -> None:
    # Settings, tokens and proxies of the caller's environment change nothing, nor do they break it.
    process, log, shown = start_demo(
        *("--runner", runner, "--json", "--keep"),
        HF_TOKEN="of the caller",
        ADMIN_TOKEN="of the caller",
        HF_HUB_OFFLINE="1",
        PLATFORM_RUN_MODE="no such setting",
        PLATFORM_DATABASE_URL="postgres://nowhere.invalid/x",
        HTTP_PROXY="http://127.0.0.1:1",
        http_proxy="http://127.0.0.1:1",
        NO_PROXY="",
        no_proxy="",
    )
    eventually(lambda: "until you press Ctrl-C" in log.read_text() or process.poll() is not None, 100)
    assert process.poll() is None, log.read_text()
    outcome = json.loads(shown.read_text())
    token = Path(outcome["tokens"]["alice"]).read_text().strip()
    me = httpx.get(f"{outcome['url']}/v1/me", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    assert me.json()["hub_username"] == "alice"
    assert token not in log.read_text()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 0
    naive, best = outcome["submissions"][0], outcome["submissions"][-1]
    primary = outcome["card"]["primary_metric"]
    assert naive["receipt"]["credits_earned"] == 0
    assert best["receipt"]["credits_earned"] == 100
    assert best["receipt"]["scores"][primary] > 0.8 > naive["receipt"]["scores"][primary] > 0
    assert [place["submission_id"] for place in outcome["leaderboard"]] == [
        submitted["receipt"]["submission_id"] for submitted in (best, naive)
    ]
    balances = {account["hub_username"]: account["credits"] for account in outcome["accounts"]}
    first, again, cancelled = (order["request"] for order in outcome["orders"])
    assert [order["by"] for order in outcome["orders"]] == ["alice", "collidium", "alice"]
    assert [first["state"], again["state"], cancelled["state"]] == ["completed", "completed", "cancelled"]
    assert [moment["state"] for moment in first["timeline"]] == ["queued", "running", "completed"]
    assert first["output_is_mock"] == (runner == "mock")
    assert again["request_id"] == first["request_id"]
    assert (again["cached"], again["credits_charged"]) == (True, 0)
    assert cancelled["credits_refunded"] == pytest.approx(
        cancelled["credits_charged"] - cancelled["node_hours"]
    )
    assert cancelled["credits_refunded"] > cancelled["credits_charged"] / 2
    paid = min(first["node_hours"], first["credits_charged"]) + cancelled["node_hours"]
    assert balances == {"collidium": 10, "alice": pytest.approx(110 - paid)}
    assert sum(entry["delta"] for entry in outcome["ledger"]["alice"]) == pytest.approx(110 - paid)
    for state in ("queued", "running", "completed"):
        assert f"Request {first['request_id']} is {state}" in log.read_text()
    assert outcome["card"]["eval_events"] == {"start": 3, "stop": 5}
    with pytest.raises(httpx.ConnectError):
        httpx.get(outcome["url"], trust_env=False)
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "data").exists()


@pytest.mark.long
def test_a_demo_that_is_kept_shows_six_boards(start_demo: StartDemo) -> None:
    process, log, shown = start_demo("--runner", "mock", "--json", "--keep")
    eventually(lambda: "boards are live" in log.read_text() or process.poll() is not None, 100)
    url = json.loads(shown.read_text())["url"]
    tasks = httpx.get(f"{url}/v1/benchmark/tasks", trust_env=False).json()
    assert len(tasks) == 6
    for task in tasks:
        board = httpx.get(f"{url}/v1/leaderboard/{task['name']}", trust_env=False).json()
        assert board[0]["hub_username"] == ("alice" if task["name"] == "tracking" else "baselines")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 0


def test_the_computing_runner_is_detected() -> None:
    """The mock where there is no pipeline, and a clear word to who asked for one."""
    blocked_pipeline = plugins.load(["acts_pipeline"])
    assert choose_runner("auto", plugins.load()) is (LOCAL if SIMULATES_HERE else MOCK)
    assert choose_runner("auto", blocked_pipeline) is MOCK
    with pytest.raises(ConfigurationError, match="no pipeline named 'acts'"):
        choose_runner("local", blocked_pipeline)


def test_a_directory_that_is_not_empty_is_refused(collidium: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    done = collidium("demo", "--data-dir", str(tmp_path / "used"))
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_a_step_that_fails_ends_with_1(collidium: RunCommand, scratch: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = collidium("demo", "--runner", "mock", "--port", str(port))
    assert done.returncode == 1
    assert f"cannot listen on port {port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(scratch.iterdir()) == []


def test_ended_half_way_it_ends_the_server(start_demo: StartDemo, tmp_path: Path) -> None:
    process, log, _ = start_demo("--runner", "mock", "--data-dir", str(tmp_path / "kept"))
    # What comes after the start of the server.
    eventually(lambda: "Publishing" in log.read_text() or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143, log.read_text()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert (tmp_path / "kept" / "collidium.sqlite3").exists()


@pytest.fixture
def start_demo(isolated_environment: dict[str, str], scratch: Path, tmp_path: Path) -> Iterator[StartDemo]:
    """Starts the demo in a session of its own; gives its process, and files of its errors and output."""
    log, shown = tmp_path / "log", tmp_path / "shown"
    with ExitStack() as ends:

        def start(*options: str, **variables: str) -> tuple[ForkedProcess, Path, Path]:
            with log.open("wb") as errors, shown.open("wb") as output:
                process = fork_server().start(
                    ["demo", *options], isolated_environment | variables, tmp_path, output, errors
                )
                assert process is not None
            ends.callback(process.wait)
            ends.callback(_kill, process.pid)
            return process, log, shown

        yield start


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
