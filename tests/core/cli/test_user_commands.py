"""login, me, submit, check and leaderboard, as a user types them against a real server."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from tests.core.cli.conftest import Caller, RunCommand
from tests.core.servers import benchmark_server, write_oracle

from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.server import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with benchmark_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def alice(server: ServerProcess) -> Caller:
    return Caller(server, "alice")


@pytest.fixture(scope="module")
def token(alice: Caller) -> str:
    return alice.environment["HF_TOKEN"]


@pytest.fixture
def bad_file(tmp_path: Path) -> Path:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"event_id": [3, 3], "hit_id": [-5, -5], "track_id": [0, -9]}), path)
    return path


# -- login -------------------------------------------------------------------------------------------------


def login(
    environment: dict[str, str], typed: str, *arguments: str, backend: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "collidium", "login", *arguments],
        env=environment | {"PLATFORM_BACKEND": backend},
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_login_keeps_a_token_that_works(
    server: ServerProcess, token: str, isolated_environment: dict[str, str], collidium: RunCommand
) -> None:
    done = login(isolated_environment, token + "\n", "--token-stdin", backend=server.base_url)
    assert done.returncode == 0, done.stderr
    assert "as alice" in done.stderr
    assert token not in done.stdout + done.stderr
    kept = Path(isolated_environment["HOME"]) / ".config" / "collidium" / "login.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert collidium("me", PLATFORM_BACKEND=server.base_url).returncode == 0
    assert collidium("me", PLATFORM_BACKEND=server.base_url, HF_TOKEN="wrong").returncode == 3
    assert login(isolated_environment, "", "--forget", backend=server.base_url).returncode == 0
    assert collidium("me", PLATFORM_BACKEND=server.base_url).returncode == 3


def test_login_keeps_nothing_that_does_not_work(
    server: ServerProcess, isolated_environment: dict[str, str]
) -> None:
    for typed, backend, code in (
        ("wrong\n", server.base_url, 3),
        ("\n", server.base_url, 2),
        ("any\n", "http://127.0.0.1:1", 4),
    ):
        assert login(isolated_environment, typed, "--token-stdin", backend=backend).returncode == code
    assert not (Path(isolated_environment["HOME"]) / ".config").exists()


def test_a_token_that_is_typed_is_not_shown(
    collidium: RunCommand, server: ServerProcess, token: str, isolated_environment: dict[str, str]
) -> None:
    isolated_environment["PLATFORM_BACKEND"] = server.base_url
    shown = collidium.terminal_output("login", prompt="Hub token: ", typed=token)
    assert "as alice" in shown
    assert token not in shown


# -- me ------------------------------------------------------------------------------------------------------


def test_me_and_the_ledger(alice: Caller) -> None:
    assert "alice" in alice("me").stdout
    assert alice.data("me")["hub_username"] == "alice"
    entries = alice.data("me", "--transactions")
    assert entries[-1]["reason"] == "signup_grant"
    assert "signup_grant" in alice("me", "--transactions").stdout
    assert len(alice.data("me", "--transactions", "--limit", "1")) == 1


def test_notifications_are_switched(alice: Caller) -> None:
    assert "scored, disqualified, deadline, closed, results, job" in alice("account", "notify").stdout
    kinds = alice.data("account", "notify", "--off", "job", "--off", "scored")["kinds"]
    assert [kind for kind, is_on in kinds.items() if not is_on] == ["scored", "job"]
    assert "not sent" in alice("account", "notify", "--on", "job").stdout
    assert alice.data("account", "notify")["kinds"] == kinds | {"job": True}
    refused = alice("account", "notify", "--email", "alice@example.org")
    assert (refused.returncode, "sends no e-mail" in refused.stderr) == (3, True)
    assert alice("account", "notify", "--on", "spam").returncode == 3
    assert alice("account", "notify", "--on", "job", "--off", "job").returncode == 2
    assert alice("account", "notify", "--no-email", "--json").returncode == 0


# -- submit, check, leaderboard -----------------------------------------------------------------------------


def test_from_check_to_leaderboard(alice: Caller, tmp_path: Path) -> None:
    path = tmp_path / "oracle.parquet"
    rows = write_oracle(path).num_rows
    checked = alice("check", "tracking", str(path))
    assert (checked.returncode, checked.stdout) == (0, f"oracle.parquet is valid: {rows} rows.\n")
    submitted = alice("submit", "tracking", str(path), "--json", "--model-repo", "alice/oracle")
    assert submitted.returncode == 0, submitted.stderr
    assert submitted.stderr == ""
    receipt = json.loads(submitted.stdout)
    assert receipt["scores"]["trackml_weighted_efficiency"] == 1.0
    assert receipt["credits_earned"] == 100
    again = alice("submit", "tracking", str(path))
    assert "trackml_weighted_efficiency 1 (error unknown)" in " ".join(again.stdout.split())
    assert "This file was submitted before" in again.stderr
    assert receipt["submission_id"] in again.stdout
    quota = alice.data("challenge", "quota", "tracking")
    left = f"{quota['submissions_left']} of {quota['submissions_per_day']} submissions are left today"
    assert left in alice("challenge", "quota", "tracking").stderr
    assert left in alice("challenge", "show", "tracking").stdout
    assert left in again.stderr
    assert "left today" not in alice("challenge", "show", "tracking", HF_TOKEN="").stdout
    places = alice.data("leaderboard", "tracking")
    assert [place["submission_id"] for place in places] == [receipt["submission_id"]]
    (mine,) = alice.data("submissions", "--task", "tracking")
    assert (mine["submission_id"], mine["model_repo"]) == (receipt["submission_id"], "alice/oracle")
    listed = alice("submissions").stdout
    assert receipt["submission_id"] in listed
    assert "trackml_weighted_efficiency 1 (error unknown)" in " ".join(listed.split())
    here = ("score", "tracking", str(path), "--from", str(EVENTS_DIRECTORY), "--events", "3:5")
    assert "trackml_weighted_efficiency 1 (error unknown)" in " ".join(alice(*here).stdout.split())
    table = alice("leaderboard", "tracking").stdout
    assert "trackml_weighted_efficiency" in table
    assert "alice/oracle (missing)" in " ".join(table.split())


def test_links_of_a_submission(alice: Caller, tmp_path: Path) -> None:
    path = tmp_path / "linked.parquet"
    write_oracle(path, seed=1)
    submission = alice.data("submit", "tracking", str(path))["submission_id"]
    code = "https://github.com/alice/helix"
    kept = alice.data("link", submission, "--model-repo", "alice/helix", "--code-url", code)
    assert (kept["model_repo"], kept["model_claim"], kept["code_url"]) == ("alice/helix", "missing", code)
    removed = alice("link", submission, "--remove", "code", "--paper-url", "https://arxiv.org/abs/1")
    assert removed.stdout.split() == [
        *("model", "alice/helix", "(missing)", "code", "-", "paper", "https://arxiv.org/abs/1")
    ]
    assert "alice/helix (missing)" in " ".join(alice("submissions").stdout.split())
    again = alice("submit", "tracking", str(path), "--model-repo", "alice/other")
    assert again.returncode == 3
    assert "linked to the model alice/helix" in " ".join(again.stderr.split())


def test_a_withdrawn_submission_stays_withdrawn(server: ServerProcess, tmp_path: Path) -> None:
    """Withdrawing asks first on a terminal; the file sent again does not count, as its exit code shows."""
    dora, path = Caller(server, "dora"), tmp_path / "withdrawn.parquet"
    # Without a track there is no new best, and what earned credits is not withdrawn.
    table = write_oracle(path, seed=2)
    pq.write_table(table.set_column(2, "track_id", pa.array([-1] * len(table), pa.int64())), path)
    sent = dora.data("submit", "tracking", str(path))["submission_id"]
    chosen = dora("choose", sent)
    assert f"{sent}\n" in chosen.stdout
    assert ("tracking: 1 of 2." in chosen.stdout, "1 more" in chosen.stderr) == (True, True)
    undone = dora("choose", sent, "--not")
    assert ("tracking: 0 of 2." in undone.stdout, "best submissions count" in undone.stderr) == (True, True)
    dora.data("choose", sent)
    assert "chosen" in dora("submissions").stdout
    assert dora.on_a_terminal("n", "withdraw", sent)[0] != 0
    assert dora.data("submissions", sent)["unranked"] is None
    assert dora.on_a_terminal("y", "withdraw", sent)[0] == 0
    assert "chosen" not in dora("submissions").stdout
    again = dora("submit", "tracking", str(path))
    assert (again.returncode, sent in again.stdout) == (1, True)
    assert "is unranked: withdrawn by its owner" in " ".join(again.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "nothing to change"),
        (("--remove", "code", "--code-url", "https://a.example"), 2, "both set and removed"),
        (("--remove", "scores"), 2, "'scores' is not one of"),
        (("--code-url", "http://a.example"), 3, "https://"),
        (("--model-repo", "helix"), 3, "NAMESPACE/NAME"),
        (("--model-repo", "alice/helix"), 3, "there is no submission"),
    ],
)
def test_links_that_cannot_be_set(alice: Caller, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = alice("link", "0" * 32, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.split())


def test_every_problem_of_a_file_is_shown(alice: Caller, bad_file: Path) -> None:
    for command in ("check", "submit"):
        done = alice(command, "tracking", str(bad_file))
        assert done.returncode == 3
        assert done.stdout == ""
        assert "column hit_id" in done.stderr
        assert "column track_id" in done.stderr
        assert "for example" in done.stderr
        advice = f"`collidium check tracking {bad_file}` checks it free of charge"
        assert (advice in " ".join(done.stderr.split())) == (command == "submit")
    problem = json.loads(alice("check", "tracking", str(bad_file), "--json").stderr)
    assert {item.get("column") for item in problem["errors"]} >= {"hit_id", "track_id"}


def test_problems_of_a_file_name_its_columns_once(alice: Caller, tmp_path: Path) -> None:
    path = tmp_path / "wrong.parquet"
    pq.write_table(pa.table({"event_id": ["3"], "hit": [5], "track": [1]}), path)
    done = alice("check", "tracking", str(path), COLUMNS="500")
    assert done.stderr.splitlines()[:-1] == [
        "Error: the predictions have 5 problems",
        "  - column event_id: must hold integers, not string",
        "  - column hit_id: is missing; the columns are event_id, hit_id, track_id",
        "  - column track_id: is missing",
        "  - column hit: is not asked for",
        "  - column track: is not asked for",
    ]
    pq.write_table(pa.table({"event_id": [3], "hit_id": [5], "track_id": ["1"]}), path)
    done = alice("check", "tracking", str(path))
    assert done.stderr.startswith("Error: column track_id: must hold integers, not string\n")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("submit", "tracking_s"), {"tracking_small"}),
        (("task", "show", "an"), {"anomaly"}),
        (("estimate", "--preset", "higgs-portal-b"), {"higgs-portal-benchmark"}),
        (("datasets", "tables", "alice/od"), {"alice/odd-ttbar"}),
    ],
)
def test_shells_complete_names(
    alice: Caller, server: ServerProcess, token: str, words: tuple[str, ...], wanted: set[str]
) -> None:
    if "datasets" in words:
        card = b"---\ntags: [collidium]\n---\n"
        api = HfApi(f"{server.base_url}/hub", token)
        api.create_repo("alice/odd-ttbar", repo_type="dataset")
        api.upload_file(
            path_or_fileobj=card, path_in_repo="README.md", repo_id="alice/odd-ttbar", repo_type="dataset"
        )
    shell = {
        "_COLLIDIUM_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("collidium", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = alice(**shell)
    assert {line.removeprefix("plain,") for line in done.stdout.splitlines() if "plain," in line} == wanted


def test_the_tasks_of_the_server(alice: Caller) -> None:
    assert "tracking" in alice("tasks").stdout
    assert "tracking" in [card["name"] for card in alice.data("tasks")]
    shown = alice("tasks", "tracking").stdout
    for part in ("3:5", "tracker_hits", "track_id", "trackml_weighted_efficiency (primary)", "floor", "50"):
        assert part in shown
    assert alice.data("tasks", "tracking")["eval_events"] == {"start": 3, "stop": 5}


def test_an_unknown_task(alice: Caller, bad_file: Path) -> None:
    for arguments, lists in ((("leaderboard",), "challenge list"), (("submit", str(bad_file)), "tasks")):
        done = alice(arguments[0], "nothing", *arguments[1:])
        assert done.returncode == 3
        assert "nothing" in done.stderr
        assert f"`collidium {lists}`" in done.stderr
