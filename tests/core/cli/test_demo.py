"""``collidium demo``: the whole loop, as the README's first command runs it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from tests.core.cli.conftest import RunCommand
from tests.waiting import eventually

from collidium import plugins
from collidium.demo.orders import LOCAL, MOCK, choose
from collidium.errors import ConfigurationError

SIMULATES_HERE = sys.platform == "linux" and all(map(find_spec, ("acts", "pythia8mc")))


@pytest.fixture
def scratch(isolated_environment: dict[str, str], tmp_path: Path) -> Path:
    """Where temporary directories of the command are made."""
    path = tmp_path / "scratch"
    path.mkdir()
    isolated_environment["TMPDIR"] = str(path)
    return path


RUNNERS = [
    "mock",
    pytest.param(
        "local", marks=pytest.mark.skipif(not SIMULATES_HERE, reason="needs the extra sim, and Linux")
    ),
]


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_demo_scores_orders_pays_and_leaves_nothing(
    collidium: RunCommand, scratch: Path, tmp_path: Path, runner: str
) -> None:
    # Settings, tokens and proxies of whoever runs it change nothing, nor do they break it.
    done = collidium(
        "demo",
        "--runner",
        runner,
        "--json",
        HF_TOKEN="of the caller",  # noqa: S106 -- of a test
        ADMIN_TOKEN="of the caller",  # noqa: S106 -- of a test
        HF_HUB_OFFLINE="1",
        PLATFORM_RUN_MODE="no such setting",
        PLATFORM_DATABASE_URL="postgres://nowhere.invalid/x",
        HTTP_PROXY="http://127.0.0.1:1",
        http_proxy="http://127.0.0.1:1",
        NO_PROXY="",
        no_proxy="",
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
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
    paid = first["credits_charged"] + cancelled["node_hours"]
    assert balances == {"collidium": 10, "alice": pytest.approx(110 - paid)}
    assert sum(entry["delta"] for entry in outcome["ledger"]["alice"]) == pytest.approx(110 - paid)
    for state in ("queued", "running", "completed"):
        assert f"Request {first['request_id']} is {state}" in done.stderr
    assert outcome["card"]["eval_events"] == {"start": 3, "stop": 5}
    with pytest.raises(httpx.ConnectError):
        httpx.get(outcome["url"], trust_env=False)
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "data").exists()


def test_the_computing_runner_is_detected() -> None:
    """The mock where there is no pipeline, and a clear word to who asked for one."""
    blocked_pipeline = plugins.load(["acts_pipeline"])
    assert choose("auto", plugins.load()) is (LOCAL if SIMULATES_HERE else MOCK)
    assert choose("auto", blocked_pipeline) is MOCK
    with pytest.raises(ConfigurationError, match="no pipeline named 'acts'"):
        choose("local", blocked_pipeline)


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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_keep_runs_until_interrupted_and_ends_the_server(
    isolated_environment: dict[str, str], scratch: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    data_dir = tmp_path / "kept"
    told = tmp_path / "told"
    with told.open("w") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "collidium",
                "demo",
                "--runner",
                "mock",
                "--keep",
                "--data-dir",
                str(data_dir),
            ],
            env=isolated_environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        eventually(lambda: "until you press Ctrl-C" in told.read_text() or process.poll() is not None)
        assert process.poll() is None, told.read_text()
        line = next(line for line in told.read_text().splitlines() if "until you press Ctrl-C" in line)
        url = next(word for word in line.split() if word.startswith("http"))
        token = (data_dir / "alice.token").read_text().strip()
        me = httpx.get(f"{url}/v1/me", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        assert me.json()["hub_username"] == "alice"
        assert token not in told.read_text()
        os.killpg(process.pid, number)
        assert process.wait(60) == code
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)
    assert (data_dir / "collidium.sqlite3").exists()
