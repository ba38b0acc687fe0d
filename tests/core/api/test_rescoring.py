"""Rescoring: old scores are kept, bests are computed again, and nothing is paid twice."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from tests.waiting import eventually

from collidium.runtime.failpoints import VARIABLE
from collidium.testing.server import ServerProcess, run_command

from .conftest import (
    EVENTS,
    SignIn,
    calling,
    credits_of,
    ok,
    operating,
    parquet,
    spoiled,
)
from .timed_task import install_timed

SUBMIT = "/v1/benchmark/timed/submit"
METRIC = "trackml_weighted_efficiency"
#: A scorer that turns the order of submissions round, in both metrics.
TURNED = f"scores = {{'speed': 1 / scores['speed'], '{METRIC}': 1.5 - 0.5 * scores['{METRIC}']}}"


@pytest.fixture
def site(timed: ServerProcess) -> Path:
    """Where the task is installed."""
    return timed.directory / "site"


def predictions(oracle: pa.Table, keep: float, seconds: float) -> pa.Table:
    """The oracle with a part of its hits assigned, in that many seconds."""
    return spoiled(oracle, keep).append_column("seconds", pa.array(np.full(len(oracle), seconds)))


def submit(client: httpx.Client, table: pa.Table) -> Any:
    return ok(client.post(SUBMIT, content=parquet(table)))


def rescore(server: ServerProcess, *options: str) -> Any:
    done = server.run("benchmark", "rescore", "timed", *options, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def board(client: httpx.Client) -> list[str]:
    return [place["submission_id"] for place in client.get("/v1/leaderboard/timed?all=true").json()]


def test_a_preview_shows_what_applying_does(
    timed: ServerProcess, sign_in: SignIn, site: Path, oracle: pa.Table
) -> None:
    people = [sign_in(name) for name in ("alice", "bob", "carol")]
    good, bad, middle = (
        submit(person, predictions(oracle, keep, seconds))
        for person, keep, seconds in zip(people, (0.95, 0.6, 0.8), (1, 4, 2), strict=True)
    )
    ids = [made["submission_id"] for made in (good, bad, middle)]
    assert board(people[0]) == [ids[0], ids[2], ids[1]]
    assert [credits_of(person) for person in people] == [60, 10, 10]

    install_timed(site, "2", TURNED)
    preview = rescore(timed, "--preview")
    assert board(people[0]) == [ids[0], ids[2], ids[1]], "a preview changes nothing"
    assert [credits_of(person) for person in people] == [60, 10, 10]
    assert people[0].get(f"/v1/submissions/{ids[1]}").json()["earlier_scores"] == []

    applied = rescore(timed, "--apply")
    assert applied == preview | {"applied": True}
    assert [(c["submission_id"], c["rank_before"], c["rank"]) for c in applied["submissions"]] == [
        (ids[1], 3, 1),
        (ids[2], 2, 2),
        (ids[0], 1, 3),
    ]
    assert board(people[0]) == [ids[1], ids[2], ids[0]]
    assert [credits_of(person) for person in people] == [60, 60, 10], "newly won by bob, kept by alice"
    (best,) = (best for best in applied["bests"] if best["metric"] == METRIC)
    shown = people[0].get(f"/v1/submissions/{ids[1]}").json()
    assert (best["before"], best["after"]) == (good["scores"][METRIC], shown["scores"][METRIC])
    assert (shown["scorer_version"], shown["credits_earned"]) == ("2", 50)
    (earlier,) = shown["earlier_scores"]
    assert (earlier["scores"], earlier["scorer_version"]) == (bad["scores"], "1")
    assert earlier["uncertainties"] == bad["uncertainties"]

    again = rescore(timed, "--apply")
    assert sum(change["earns"] for change in again["submissions"]) == 0
    assert [credits_of(person) for person in people] == [60, 60, 10]
    assert timed.run("ledger", "audit").returncode == 0
    table = timed.run("benchmark", "rescore", "timed")
    assert ids[0] in table.stdout
    assert "Nothing has changed" in table.stderr


@pytest.mark.parametrize("failpoint", ["rescore.kept", "rescore.before_commit"])
def test_rescoring_resumes_after_a_kill_and_doubles_nothing(
    timed: ServerProcess,
    sign_in: SignIn,
    site: Path,
    oracle: pa.Table,
    failpoint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = [sign_in(name) for name in ("alice", "bob")]
    ids = [
        submit(person, predictions(oracle, keep, 1))["submission_id"]
        for person, keep in zip(people, (0.95, 0.6), strict=True)
    ]
    before = board(people[0])
    install_timed(site, "2", TURNED)
    with monkeypatch.context() as armed:
        armed.setitem(timed.environment, VARIABLE, failpoint)
        for _ in range(2):
            killed = timed.run("benchmark", "rescore", "timed", "--apply")
            assert killed.returncode == -signal.SIGKILL
            assert board(people[0]) == before
            assert [credits_of(person) for person in people] == [60, 10]
            if failpoint == "rescore.kept":
                break
    rescore(timed, "--apply")
    assert board(people[0]) == ids
    assert [credits_of(person) for person in people] == [60, 60]
    with operating(timed) as admin:
        audited = admin.get("/admin/audit").json()
    assert [(logged["action"], logged["details"]["credits_paid"]) for logged in audited] == [
        ("rescore", "50")
    ]
    assert timed.run("ledger", "audit").returncode == 0


@pytest.mark.parametrize(
    ("failpoint", "by", "paid"),
    [("rescore.kept", "admin", 50), ("rescore.before_commit", "organiser", 0)],
)
def test_a_rescoring_goes_on_after_its_server_is_killed(
    timed: ServerProcess,
    sign_in: SignIn,
    site: Path,
    oracle: pa.Table,
    failpoint: str,
    by: str,
    paid: int,
) -> None:
    """An organiser pays no credits."""
    people = [sign_in(name) for name in ("alice", "bob")]
    ids = [
        submit(person, predictions(oracle, keep, seconds))["submission_id"]
        for person, keep, seconds in zip(people, (0.95, 0.6), (1, 2), strict=True)
    ]
    timed.stop()
    install_timed(site, "2", TURNED)
    timed.environment |= {VARIABLE: failpoint, "PLATFORM_LEASE_SECONDS": "1"}
    timed.start()
    where = "/admin/challenges/timed/rescoring"
    with operating(timed) as admin:
        if by == "organiser":
            body = {"name": by, "scopes": ["benchmarks"], "challenge": "timed"}
            admin.headers["X-Admin-Token"] = admin.post("/admin/operators", json=body).json()["token"]
        assert admin.get(where).status_code == 404
        with suppress(httpx.TransportError):  # it may be killed before it has answered
            admin.post(where, json={"apply": True})
    eventually(lambda: timed._running().poll() is not None)
    del timed.environment[VARIABLE]
    timed.start()
    with operating(timed) as admin:
        eventually(lambda: admin.get(where).json()["ended_at"] is not None)
        done = admin.get(where).json()
        assert (done["problem"], done["unscored"]) == (None, {})
        changes = [(one["submission_id"], one["rank"], one["earns"]) for one in done["changes"]]
        assert changes == [(ids[1], 1, paid), (ids[0], 2, 0)]
        assert [one["hub_username"] for one in done["changes"]] == ["bob", "alice"]
        audited = admin.get("/admin/audit").json()
    applied = [line for line in audited if line["action"] == "rescore"]
    assert [(line["actor"], line["details"]["credits_paid"]) for line in applied] == [(by, str(paid))]
    assert timed.run("ledger", "audit").returncode == 0


def test_a_file_resubmitted_to_a_new_scorer_is_listed_once(
    timed: ServerProcess, sign_in: SignIn, site: Path, oracle: pa.Table
) -> None:
    alice = sign_in("alice")
    table = predictions(oracle, 0.9, 1)
    first = submit(alice, table)
    timed.stop()
    install_timed(site, "2", TURNED)
    timed.start()
    with calling(timed, Authorization=alice.headers["Authorization"]) as alice:
        second = submit(alice, table)
        assert second["submission_id"] != first["submission_id"]
        for _ in range(2):
            changes = {change["submission_id"]: change for change in rescore(timed, "--apply")["submissions"]}
            assert second["submission_id"] in changes[first["submission_id"]]["problem"]
            assert board(alice) == [second["submission_id"]]
        assert submit(alice, table)["submission_id"] == second["submission_id"]
        kept = alice.get(f"/v1/submissions/{first['submission_id']}").json()
        assert (kept["scores"], kept["scorer_version"]) == (first["scores"], "1")


def test_submissions_that_a_new_truth_rejects_lose_their_place(
    timed: ServerProcess, sign_in: SignIn, oracle: pa.Table
) -> None:
    alice = sign_in("alice")
    whole = submit(alice, predictions(oracle, 0.9, 1))
    event = oracle["event_id"].to_numpy() == 3
    part = submit(alice, predictions(oracle.filter(pa.array(event)), 0.9, 1))
    lost = submit(alice, predictions(oracle.filter(pa.array(event)), 0.8, 1))
    damaged = submit(alice, predictions(oracle.filter(pa.array(event)), 0.7, 1))
    kept = timed.data_dir / "storage" / "predictions"
    (kept / f"{lost['sha256']}.parquet").unlink()
    better = (kept / f"{part['sha256']}.parquet").read_bytes()
    (kept / f"{damaged['sha256']}.parquet").write_bytes(better)
    done = timed.run(
        *("truth", "import", "timed", "--from", str(EVENTS)),
        *("--config", "ttbar_pu0", "--events", "3:4"),
    )
    assert done.returncode == 0, done.stderr
    waits = timed.run("benchmark", "rescore", "timed", "--apply")
    assert waits.returncode == 3
    assert "waiting: 2 files" in waits.stderr
    with operating(timed) as admin:
        files = {file["submission_id"]: file for file in admin.get("/admin/challenges/timed/waiting").json()}
        assert files.keys() == {lost["submission_id"], damaged["submission_id"]}
        assert "not in the storage" in files[lost["submission_id"]]["reason"]
        assert admin.get("/admin/overview").json()["files_waiting"] == 2
        where = f"/admin/challenges/timed/submissions/{lost['submission_id']}/leave-out"
        assert admin.post(where, json={"reason": "lost"}).json()["left_out_at"]
        assert admin.post(where, json={"reason": "lost"}).status_code == 409
        assert admin.post(where, json={}).status_code == 422

    def waiting(*options: str) -> str:
        variables = {"PLATFORM_BACKEND": timed.base_url, "ADMIN_TOKEN": timed.admin_token}
        command = ("challenge", "waiting", "timed", *options)
        done = run_command(command, timed.environment | variables, timed.directory)
        return done.stdout + done.stderr

    assert damaged["submission_id"] in waiting("--retry")
    option = ("--leave-out", damaged["submission_id"])
    assert "together" in waiting(*option)
    assert "is left out" in waiting(*option, "--reason", "damaged")
    assert lost["submission_id"] in waiting()
    assert "either" in waiting(*option, "--reason", "damaged", "--retry")
    assert "nothing waits in 'timed'" in waiting("--retry")
    review = rescore(timed, "--apply")
    problems = {change["submission_id"]: change["problem"] for change in review["submissions"]}
    assert "at most" in problems[whole["submission_id"]]
    assert problems[lost["submission_id"]] == "an operator left it out: lost"
    assert problems[damaged["submission_id"]] == "an operator left it out: damaged"
    assert problems[part["submission_id"]] is None
    assert board(alice) == [part["submission_id"]]
    kept = alice.get(f"/v1/submissions/{whole['submission_id']}").json()
    assert (kept["scores"], kept["truth_version"]) == (whole["scores"], whole["truth_version"])
    assert (
        alice.get(f"/v1/submissions/{part['submission_id']}").json()["truth_version"]
        != whole["truth_version"]
    )


def test_a_scorer_at_fault_changes_nothing(
    timed: ServerProcess, sign_in: SignIn, site: Path, oracle: pa.Table
) -> None:
    alice = sign_in("alice")
    made = submit(alice, predictions(oracle, 0.9, 1))
    install_timed(site, "2", "raise KeyError('a fault')")
    done = timed.run("benchmark", "rescore", "timed", "--apply")
    assert done.returncode != 0
    assert "scoring for task timed failed" in done.stderr
    assert "Traceback" not in done.stdout
    assert board(alice) == [made["submission_id"]]
    timed.stop()
    timed.start()
    where = "/admin/challenges/timed/rescoring"
    with operating(timed) as admin:
        assert admin.post(where, json={"apply": True}).status_code == 202
        eventually(lambda: admin.get(where).json()["ended_at"] is not None)
        assert "scoring for task timed failed" in admin.get(where).json()["problem"]
    for task in ("nothing", "a" * 100):
        assert timed.run("benchmark", "rescore", task).returncode != 0
