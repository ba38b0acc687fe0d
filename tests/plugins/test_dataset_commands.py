"""``collidium datasets`` with a real hub and with a directory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import CommitOperationAdd

from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.processes import isolated_environment
from collidium.testing.server import run_command

from .conftest import HubServer

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def collidium(hub: HubServer, tmp_path: Path) -> Run:
    """Runs ``collidium datasets``; the environment names the hub."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = isolated_environment(tmp_path, {"PLATFORM_HUB_URL": hub.url, **variables})
        return run_command(("datasets", *arguments), environment, tmp_path)

    return run


@pytest.fixture(scope="session")
def repo(hub: HubServer) -> str:
    """Five real events, in the layout that is written, tagged, private."""
    api = hub.api("grace")
    files = {
        f"data/ttbar_pu0_{path.stem}/train-00000-of-00001.parquet": path.read_bytes()
        for path in EVENTS_DIRECTORY.glob("*.parquet")
    }
    files["README.md"] = b"---\ntags: [collidium]\n---\n"
    api.create_repo("grace/real-events", repo_type="dataset", private=True)
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    api.create_commit("grace/real-events", operations, repo_type="dataset", commit_message="Events")
    return "grace/real-events"


def shown(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_dataset_is_listed_and_downloaded(
    collidium: Run, hub: HubServer, repo: str, tmp_path: Path
) -> None:
    grace = {"HF_TOKEN": hub.token("grace")}
    assert repo in [item["repo"] for item in shown(collidium("list", "--json", **grace))]
    (config,) = shown(collidium("list", repo, "--json", **grace))
    assert (config["config"], config["shards"]) == ("ttbar_pu0", 4)
    assert config["tables"] == ["calo_hits", "particles", "tracker_hits", "tracks"]
    tables = shown(collidium("tables", repo, "--json", **grace))
    assert {(table["events"], table["first_event"], table["last_event"]) for table in tables} == {(5, 0, 4)}
    about = shown(collidium("info", repo, "--json", **grace))
    assert (about["repo"], about["hub"], about["private"]) == (repo, hub.url, True)
    assert len(about["commit"]) == 40
    options = ("--tables", "tracker_hits, particles", "--events", "3:5", "--output", str(tmp_path / "events"))
    done = shown(collidium("download", repo, "--config", "ttbar_pu0", *options, "--json", **grace))
    assert done["revision"] == about["commit"]
    assert len(done["downloaded"]) == 2
    (config,) = shown(collidium("list", str(tmp_path / "events"), "--json"))
    assert config["tables"] == ["particles", "tracker_hits"]


def test_people_read_tables(collidium: Run, hub: HubServer, repo: str) -> None:
    grace = {"HF_TOKEN": hub.token("grace")}
    assert (
        collidium("list", repo, **grace).stdout.splitlines()[1].startswith("ttbar_pu0  calo_hits, particles")
    )
    lines = collidium("tables", repo, **grace).stdout.splitlines()
    assert lines[0].split() == ["config", "table", "shards", "size", "events", "range"]
    assert lines[3].split() == ["ttbar_pu0", "tracker_hits", "1", "72.3", "kB", "5", "0:5"]
    lines = collidium("tables", repo, "--shards", **grace).stdout.splitlines()
    assert lines[1].split()[1] == "data/ttbar_pu0_calo_hits/train-00000-of-00001.parquet"
    assert "configs        ttbar_pu0" in collidium("info", repo, **grace).stdout
    lines = collidium("info", repo, "--table", "tracks", **grace).stdout.splitlines()
    assert ["z0", "z0", "list<element:", "float>", "mm"] in [line.split() for line in lines]
    done = collidium("download", repo, "--tables", "tracks", **grace)
    assert Path(done.stdout.strip(), "data/ttbar_pu0_tracks/train-00000-of-00001.parquet").exists()
    assert "1 downloaded (13.2 kB)" in done.stderr
    again = collidium("download", repo, "--tables", "tracks", **grace)
    assert "1 downloaded" not in again.stderr
    assert again.stdout == done.stdout


def test_a_directory_is_a_source(collidium: Run) -> None:
    here = str(EVENTS_DIRECTORY)
    (config,) = shown(collidium("list", here, "--json"))
    assert (config["config"], config["bytes"]) == (
        "",
        sum(path.stat().st_size for path in EVENTS_DIRECTORY.iterdir()),
    )
    assert len(shown(collidium("tables", here, "--json"))) == 4
    assert shown(collidium("info", here, "--json"))["directory"] == here
    columns = shown(collidium("info", here, "--table", "tracker_hits", "--json"))
    assert {"column": "x", "stored_as": "x", "type": "list<element: float>", "unit": "mm"} in columns
    done = shown(collidium("download", here, "--events", "1:3", "--json"))
    assert (done["directory"], done["revision"], done["downloaded"]) == (here, "local", [])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("list", "grace/absent"), 3, "there is no dataset repository grace/absent"),
        (("list", "nothing"), 3, "neither an existing directory, nor a hub repository"),
        (("list", "a/b", "--hub", "http://127.0.0.1:9"), 4, "cannot reach the hub http://127.0.0.1:9"),
        (("list", "a/b", "--hub", "nowhere"), 1, "the hub's address must be like"),
        (("tables", "HERE", "--config", "x", "--revision", "y"), 0, ""),
        (("info", "HERE", "--table", "x"), 1, "table x; there are: calo_hits, particles"),
        (("download", "HERE", "--tables", "x"), 1, "table x; there are: calo_hits, particles"),
        (("download", "HERE", "--events", "3:9"), 1, "5:9 are missing (available events: 0 to 4)"),
        (("download", "HERE", "--output", "x"), 3, "nothing to download"),
        (("download", "a/b", "--events", "9"), 2, "START:STOP"),
        (("download", "a/b", "--output", "x", "--cache", "y"), 2, "not both"),
        (("download",), 2, "Missing argument"),
        (("list", "--limit", "0"), 2, "--limit"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_errors_are_reported(collidium: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = collidium(*(str(EVENTS_DIRECTORY) if word == "HERE" else word for word in arguments))
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert code == 0 or done.stdout == ""


def test_a_token_is_in_no_message(collidium: Run, repo: str) -> None:
    done = collidium("list", repo, HF_TOKEN="hf_secret_of_a_user")
    assert done.returncode == 3
    assert "does not accept the token" in done.stderr
    assert "hf_secret" not in done.stderr
    odd = collidium("list", repo, HF_TOKEN="hf_secret\twith a tab")
    assert odd.returncode == 1
    assert "characters that no token has" in odd.stderr
    assert "hf_secret" not in odd.stderr


def test_a_setting_that_does_not_exist_is_reported(collidium: Run, repo: str) -> None:
    done = collidium("list", repo, PLATFORM_HUBURL="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "PLATFORM_HUBURL" in done.stderr
