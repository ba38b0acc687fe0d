"""`collidium challenge create` next to a running server, killed and resumed, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from collidium.cli.seed import progress_text
from collidium.datasets import load, sample
from collidium.testing.server import ServerProcess, run_command

NAME = "tracks-2027"
OPTIONS = ("--task", "tracking_small", "--dataset", str(sample.DIRECTORY), "--events", "3", "--eval", "2")
KILLS = ("seed.published", "seed.imported", "seed.submitted")


def create(
    server: ServerProcess, *options: str, name: str = NAME, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url} | variables
    return run_command(("challenge", "create", name, *options), environment, server.directory)


def get(server: ServerProcess, path: str) -> httpx.Response:
    return httpx.get(f"{server.base_url}{path}", trust_env=False)


def test_time_that_is_left_is_a_bound_until_it_is_measured() -> None:
    """On a busy machine it takes longer than planned, and only what was done shows by how much."""
    assert progress_text("Making x", 0.0, 90) == "Making x (0%, at least 2 min left)"
    assert progress_text("Making x", 0.5, 90) == "Making x (50%, about 2 min left)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("challenge")) as server:
        yield server


@pytest.fixture(scope="module")
def made(server: ServerProcess) -> dict[str, Any]:
    """The last run's answer; the runs before it were killed, and the challenge was not visible meanwhile."""
    options = (*OPTIONS, "--public", "50", "--title", "Tracks", "--json")
    for place in KILLS:
        killed = create(server, *options, COLLIDIUM_FAILPOINT=place)
        assert killed.returncode == -signal.SIGKILL, (place, killed.stderr)
        for part in ("", "/leaderboard", "/results", "/leaderboard/history", "/teams"):
            assert get(server, f"/v1/challenges/{NAME}{part}").status_code == 404, part
        assert NAME not in get(server, "/v1/challenges").text
    done = create(server, *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_killed_run_is_resumed_and_opens_the_challenge(
    made: dict[str, Any], server: ServerProcess, tmp_path: Path
) -> None:
    assert made["steps"] > 0
    again = create(server, *OPTIONS, "--public", "50", "--json")
    assert json.loads(again.stdout)["steps"] == 0
    found = get(server, f"/v1/challenges/{NAME}").json()
    assert (found["state"], found["title"], found["public_percent"]) == ("open", "Tracks", 50)
    card = found["card"]
    assert card["accepts_submissions"]
    assert card["eval_events"] == {"start": 3, "stop": 5}
    assert card["evaluation_data"]["repository"] == f"baselines/{NAME}-eval"
    assert card["training_data"]["repository"] == f"baselines/{NAME}-train"
    places = get(server, f"/v1/challenges/{NAME}/leaderboard").json()
    assert sorted(place["model_repo"].rpartition("-")[2] for place in places) == ["edges", "helix", "naive"]
    for part in ("train", "eval"):
        hits = load(
            *(f"baselines/{NAME}-{part}", None, "tracker_hits"),
            endpoint=f"{server.base_url}/hub",
            token="",
            cache=tmp_path,
        )
        assert (hits["particle_id"].null_count == len(hits)) == (part == "eval")


def test_the_task_keeps_its_own_truth(made: dict[str, Any], server: ServerProcess) -> None:
    """So it can be on other events than its challenges; another can be made of the same truth."""
    assert get(server, "/v1/benchmark/tracking_small").json()["truth_version"] is None
    whole = get(server, f"/v1/challenges/{NAME}").json()["truth_version"].partition("-")[0]
    secret = {"ADMIN_TOKEN": server.admin_token, "PLATFORM_BACKEND": server.base_url}
    words = ("challenge", "new", "more-tracks", "--task", "tracking_small", "--json")
    refused = run_command(words, server.environment | secret, server.directory)
    assert "has no truth" in refused.stderr
    refused = run_command((*words, "--truth", "abc"), server.environment | secret, server.directory)
    assert "there is no truth 'abc'" in refused.stderr
    refused = run_command(
        (*words, "--truth", f"{whole}-final30"), server.environment | secret, server.directory
    )
    assert f"give the whole one, '{whole}'" in refused.stderr
    done = run_command((*words, "--truth", whole), server.environment | secret, server.directory)
    assert json.loads(done.stdout)["truth_version"] == whole, done.stderr


def test_what_stands_against_it_is_said_at_once(made: dict[str, Any], server: ServerProcess) -> None:
    dates = ("--opens", "2020-01-02T00:00Z", "--closes", "2020-01-01T00:00Z")
    refused = create(server, *OPTIONS, *dates, "--json", name="tracks")
    problems = [problem["detail"] for problem in json.loads(refused.stderr)["errors"]]
    for text in ("words or more", "opens_at: 2020", "closes_at: 2020", "closes before it opens"):
        assert any(text in problem for problem in problems), (text, problems)
    assert get(server, "/v1/challenges/tracks").status_code == 404
    refused = create(server, *OPTIONS, "--json", name="Jets Course")  # no name of a repository
    assert "words or more" in json.loads(refused.stderr)["errors"][0]["detail"]
    assert "continue with these" in create(server, *OPTIONS).stderr, "begun with --public 50"
    few = ("--task", "tracking_small", "--dataset", str(sample.DIRECTORY), "--events", "3", "--eval", "3")
    assert "has 5 events, not 3 and 3" in create(server, *few, name="few-tracks").stderr
    public = ("--dataset", f"baselines/{NAME}-train", "--task", "tracking_small", "--events", "1")
    assert "is public" in create(server, *public, "--eval", "2", name="no-secret").stderr
    done = create(server, "--task", "anomaly", *OPTIONS[2:], name="unblinded-mix")
    assert "the channels of a mix are truth" in done.stderr
    reading = create(server, "--task", "data_loading", *OPTIONS[2:], name="read-it")
    assert "is scored on public events" in reading.stderr
    planned = create(server, *OPTIONS, "--dry-run", "--json", name="more-tracks-2027")
    assert json.loads(planned.stdout)["notes"] == ["Baselines of tracking_small: naive, helix, edges"]
    assert {one["dataset"] for one in json.loads(planned.stdout)["datasets"]} == {
        "more-tracks-2027-train",
        "more-tracks-2027-eval",
    }
    jets = ("--task", "jets", "--events", "1", "--eval", "500", "--public", "10")
    notes = json.loads(create(server, *jets, "--dry-run", "--json", name="few-jets").stdout)["notes"]
    assert [note.partition(":")[0] for note in notes if "no value" in note] == [
        "light_rejection_70 may have no value",
        "c_rejection_70 may have no value",
    ]
    assert "50 are scored in one part" in notes[-1]


def test_a_plan_names_the_challenges_that_its_public_part_closes(
    made: dict[str, Any], server: ServerProcess
) -> None:
    """Those of the same events: a smaller public part is within a larger one, and reveals nothing."""

    def notes(percent: int) -> str:
        options = (*OPTIONS, "--public", str(percent), "--dry-run", "--json")
        done = create(server, *options, "--closes", "2099-06-30T12:00Z", name="twin-2027")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["notes"])

    closed = "will accept no submissions until twin-2027 closes on 2099-06-30 12:00 UTC"
    assert f"{NAME} {closed}" in notes(30)
    assert f"{NAME} {closed}" not in notes(60)
    assert get(server, "/v1/challenges/twin-2027").status_code == 404


def test_events_come_from_a_private_repository(made: dict[str, Any], server: ServerProcess) -> None:
    """At the commit of the first run."""
    owner = {"HF_TOKEN": server.add_user("anna"), "PLATFORM_BACKEND": server.base_url}
    publish = (
        "datasets",
        "publish",
        str(sample.DIRECTORY),
        "--repo",
        "hidden",
        "--config",
        sample.CONFIG,
    )
    done = run_command((*publish, "--private"), server.environment | owner, server.directory)
    assert done.returncode == 0, done.stderr
    options = ("--task", "tracking_small", "--dataset", "anna/hidden@main", "--events", "0", "--eval", "4")
    done = create(server, *options, "--json", name="hidden-tracks", **owner)
    assert done.returncode == 0, done.stderr
    card = get(server, "/v1/challenges/hidden-tracks").json()["card"]
    assert card["eval_events"] == {"start": 0, "stop": 4}
    assert card["training_data"] is None
    assert card["evaluation_data"]["repository"] == "baselines/hidden-tracks-eval"
