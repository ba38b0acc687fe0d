"""`collidium seed` next to a running server, killed and resumed, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.clock import Clock
from tests.counts import LONG
from tests.sandboxes import allowance
from tests.waiting import eventually

from collidium.cli.progress import StepLines
from collidium.cli.seed import each_second
from collidium.datasets import load
from collidium.records import PUBLIC_TRUTH
from collidium.testing.server import ServerProcess, run_command
from collidium_tasks.tracking_small import TrackingSmallTask

#: Each reached by the steps of one task; a kill at the first leaves the most.
ALL_KILLS = (
    *("seed.signed_in", "seed.made", "publish.uploaded", "seed.published", "seed.imported"),
    "seed.submitted",
)
KILLS = ALL_KILLS if LONG else ("seed.published", "seed.submitted")
#: Of the datasets of each name: the table and the column of the truth.
TRUTH = {
    "odd": ("tracker_hits", "particle_id"),
    "jets": ("jets", "flavour"),
    "anomaly": ("channels", "channel"),
}
TASKS = "tracking_small" if not LONG else "anomaly,data_loading,jets,tracking_latency,tracking_small,tracking"


def seed(server: ServerProcess, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url} | variables
    return run_command(("seed", "--size", "demo", *options), environment, server.directory)


def get(server: ServerProcess, path: str) -> Any:
    answer = httpx.get(f"{server.base_url}{path}", trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("seeded"), env=allowance()) as server:
        yield server


@pytest.fixture(scope="module")
def resumed(server: ServerProcess) -> dict[str, Any]:
    """The last run's answer; the runs before it were killed, each at another place."""
    for place in KILLS:
        killed = seed(server, "--tasks", TASKS, "--json", COLLIDIUM_FAILPOINT=place)
        assert killed.returncode == -signal.SIGKILL, (place, killed.stderr)
    done = seed(server, "--tasks", TASKS, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_off_a_terminal_prints_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(0.0)
    lines = StepLines(clock)
    lines.remind()
    lines.show("a", "Making a (0%)")
    lines.show("a", "Making a (1%)")  # kept for the next line
    for clock.now in (59.0, 60.0, 61.0, 119.0, 120.0, 121.0):
        lines.remind()
    lines.show("b", "Making b (50%)")
    clock.now += 59.0
    lines.remind()
    assert capsys.readouterr().err.splitlines() == [
        "Making a (0%)",
        "Making a (1%), running for 1 min",
        "Making a (1%), running for 2 min",
        "Making b (50%)",
    ]


async def test_lines_of_a_step_that_reports_nothing_go_on() -> None:
    """As the reminders are called while a step runs in a thread."""
    called = asyncio.Event()
    async with each_second(called.set):
        await called.wait()


def test_each_step_has_a_line_off_a_terminal(server: ServerProcess) -> None:
    done = seed(server, "--tasks", "data_loading")
    assert done.returncode == 0, done.stderr
    steps = ("Making odd-train", "Importing truth of data_loading", "Submitting load to data_loading")
    lines = done.stderr.splitlines()
    assert [line.partition(" (")[0] for line in lines if "left)" in line][-3:] == list(steps)


def test_a_killed_run_is_resumed_and_then_has_nothing_to_do(
    resumed: dict[str, Any], server: ServerProcess
) -> None:
    assert resumed["steps"] > 0
    again = seed(server, "--tasks", TASKS, "--json")
    assert json.loads(again.stdout)["steps"] == 0
    for task in TASKS.split(","):
        places = get(server, f"/v1/leaderboard/{task}")
        models = [place["model_repo"] for place in places if place["model"] is None]
        assert models
        assert len(models) == len(set(models)), "each baseline is there once"


def test_cards_name_what_is_scored_and_learned_from(resumed: dict[str, Any], server: ServerProcess) -> None:
    card = next(task for task in get(server, "/v1/benchmark/tasks") if task["name"] == "tracking_small")
    assert card["evaluation_data"]["repository"] == "baselines/odd-eval"
    assert card["training_data"]["repository"] == "baselines/odd-train"
    assert card["practice"] == PUBLIC_TRUTH, "the events of the package, whose rows are in another order"


def test_baselines_are_marked_linked_and_not_paid(resumed: dict[str, Any], server: ServerProcess) -> None:
    places = [one for one in get(server, "/v1/leaderboard/tracking_small") if one["model"] is None]
    assert {place["model_repo"] for place in places} == {
        "baselines/tracking_small-edges",
        "baselines/tracking_small-helix",
        "baselines/tracking_small-naive",
    }
    for place in places:
        assert (place["hub_username"], place["baseline"], place["credits_earned"]) == ("baselines", True, 0)
        assert place["model_claim"] == "verified"
    token = (server.data_dir / "seed" / "hub-token").read_text()
    me = httpx.get(f"{server.base_url}/v1/me", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    assert me.json()["credits"] == 0, "neither a grant nor a reward"
    weights = httpx.get(
        f"{server.base_url}/hub/baselines/tracking_small-edges/resolve/main/edges.npz",
        trust_env=False,
        follow_redirects=True,
    )
    assert weights.content == TrackingSmallTask().model_files("edges")["edges.npz"]
    listed = get(server, "/v1/models?task=tracking_small")
    assert {model["model_repo"] for model in listed} >= {place["model_repo"] for place in places}


def test_examples_are_run_as_models(resumed: dict[str, Any], server: ServerProcess) -> None:

    def measured() -> set[str]:
        places = get(server, "/v1/leaderboard/tracking_small")
        return {place["model_repo"] for place in places if place["model"] is not None}

    repos = {f"baselines/tracking_small-{name}-onnx" for name in ("labels", "edges")}
    eventually(lambda: measured() == repos)
    manifest = httpx.get(
        f"{server.base_url}/hub/baselines/tracking_small-labels-onnx/resolve/main/manifest.toml",
        trust_env=False,
        follow_redirects=True,
    )
    assert 'task = "tracking_small"' in manifest.text


def test_evaluation_events_are_blind_and_secrets_stay(
    resumed: dict[str, Any], server: ServerProcess, tmp_path: Path
) -> None:
    endpoint = f"{server.base_url}/hub"
    for dataset in resumed["datasets"]:
        name, _, purpose = dataset["dataset"].partition("-")
        table, column = TRUTH[name]
        rows = load(dataset["repo"], tables=table, endpoint=endpoint, token="", cache=tmp_path)
        assert (rows[column].null_count == len(rows)) == (purpose == "eval")
    private = [path for path in (server.data_dir / "seed").rglob("*") if path.stat().st_mode & 0o077]
    assert (server.data_dir / "seed").stat().st_mode & 0o077 == 0
    assert not [path for path in private if path.name in {"state.json", "hub-token"}]


def test_what_stands_against_it_is_said_at_once(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "other") as server:
        done = server.run("task", "remove", "jets")
        assert done.returncode == 0, done.stderr
        directory = server.data_dir / "seed"
        directory.mkdir()
        seeds = {"anomaly-eval": "42"}
        (directory / "state.json").write_text(json.dumps({"size": "release", "seeds": seeds}))
        headers = {"Authorization": f"Bearer {server.add_user('baselines')}"}
        assert httpx.get(f"{server.base_url}/v1/me", headers=headers, trust_env=False).status_code == 200
        away = {"PLATFORM_HUB_URL": "http://127.0.0.1:9/hub", "HF_TOKEN": "token"}
        done = seed(server, "--json", **away)
        assert done.returncode
        problems = [problem["detail"] for problem in json.loads(done.stderr)["errors"]]
        expected = ["seeded with --size release", "is a user's", "jets is not listed", "is known or short"]
        assert len(problems) == len(expected) + 1, problems
        for text in (*expected, "cannot be reached"):
            assert any(text in problem for problem in problems), (text, problems)
        assert sorted(path.name for path in directory.iterdir()) == ["state.json"], "nothing was made"
        assert "no such task: nope" in seed(server, "--tasks", "nope").stderr


def test_another_account_of_the_name_is_reported(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "taken", env=allowance()) as server:
        server.add_user("baselines")
        refused = seed(server, "--tasks", TASKS)
    assert refused.returncode
    assert "failed: there is an account 'baselines' already" in refused.stderr


def test_the_plan_is_shown_with_its_problems(server: ServerProcess) -> None:
    done = server.run("seed", "--dry-run", "--json")
    plan = json.loads(done.stdout)
    assert done.returncode == 0
    assert plan["bytes"] < 3e9
    assert plan["seconds"] < 15 * 60
    assert plan["tasks"]["tracking"] == ["naive", "helix", "edges", "ckf"]
    of_jets = server.run("seed", "--dry-run", "--json", "--tasks", "jets")
    names = [one["dataset"] for one in json.loads(of_jets.stdout)["datasets"]]
    assert names == ["ttbar-train", "ttbar-eval"]
    assert len(plan["datasets"]) == 6
