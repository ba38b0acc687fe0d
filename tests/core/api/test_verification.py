"""Self-reported values are marked, and earn nothing until an operator verifies them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pyarrow as pa
import pytest

from collidium.client import Client
from collidium.testing.server import ServerProcess

from .conftest import SignIn, credits_of, ok, operating, parquet, refused

SUBMIT = "/v1/benchmark/timed/submit"


@pytest.fixture
def admin(timed: ServerProcess) -> Iterator[httpx.Client]:
    with operating(timed) as client:
        yield client


def predictions(oracle: pa.Table, seconds: float) -> bytes:
    return parquet(oracle.append_column("seconds", pa.array(np.full(oracle.num_rows, seconds))))


def submit(client: httpx.Client, oracle: pa.Table, seconds: float) -> str:
    return str(ok(client.post(SUBMIT, content=predictions(oracle, seconds)))["submission_id"])


def test_only_what_is_verified_earns_and_raises_a_best(
    sign_in: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    alice, mallory = sign_in("alice"), sign_in("mallory")
    speed, efficiency = alice.get("/v1/benchmark/timed").json()["metrics"]
    assert (speed["self_reported"], efficiency["self_reported"]) == (True, False)
    boast = submit(mallory, oracle, 1e-9)
    honest = submit(alice, oracle, 0.5)
    assert credits_of(mallory) == 10 + 50, "the efficiency is measured here, the speed is not"
    assert credits_of(alice) == 10
    verified = ok(admin.post(f"/admin/submissions/{honest}/verify"))
    assert verified["credits_earned"] == 50
    assert credits_of(alice) == 10 + 50, "a disqualified score is no best"
    board = alice.get("/v1/leaderboard/timed?all=true").json()
    shown = {place["submission_id"]: place["verified_at"] is not None for place in board}
    assert shown == {boast: False, honest: True}
    assert alice.get(f"/v1/submissions/{honest}").json() == verified
    (logged,) = admin.get("/admin/audit").json()
    assert (logged["action"], logged["target"], logged["details"]["task"]) == ("verify", honest, "timed")


def test_verifying_often_and_at_once_pays_once(
    timed: ServerProcess, sign_in: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    alice = sign_in("alice")
    address = f"/admin/submissions/{submit(alice, oracle, 0.5)}/verify"
    for unknown in ("nothing", "%00", "a" * 32, "%ed%a0%80"):
        assert admin.post(f"/admin/submissions/{unknown}/verify").status_code == 404
    admin.post("/admin/ban", json={"hub_username": "alice", "banned": True})
    assert admin.post(address).status_code == 409
    admin.post("/admin/ban", json={"hub_username": "alice", "banned": False})
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: admin.post(address), range(6)))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len({answer.text for answer in answers}) == 1
    assert credits_of(alice) == 10 + 100
    actions = [logged["action"] for logged in admin.get("/admin/audit").json()]
    assert actions.count("verify") == 1
    assert timed.run("ledger", "audit").returncode == 0


def test_verified_at_once_each_best_is_paid_in_some_order(
    timed: ServerProcess, sign_in: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    people = [sign_in(f"user{n}") for n in range(5)]
    ids = [submit(person, oracle, 1 + n) for n, person in enumerate(people)]
    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda id_: admin.post(f"/admin/submissions/{id_}/verify"), ids))
    order = [logged["target"] for logged in reversed(admin.get("/admin/audit").json())]
    fastest, paid = 0.0, {}
    for target in order:
        record = admin.get(f"/v1/submissions/{target}").json()
        efficiency = 50 if target == ids[0] else 0
        paid[target] = 50 * (record["scores"]["speed"] > fastest) + efficiency
        fastest = max(fastest, record["scores"]["speed"])
        assert record["credits_earned"] == paid[target]
    assert [credits_of(person) for person in people] == [10 + paid[id_] for id_ in ids]


def test_a_task_without_self_reports_has_nothing_to_verify(
    alice: httpx.Client, operator: httpx.Client, oracle: pa.Table
) -> None:
    made = alice.post("/v1/benchmark/tracking/submit", content=parquet(oracle)).json()
    refused(operator.post(f"/admin/submissions/{made['submission_id']}/verify"), 409, "self-reported")


def test_the_client_and_the_command(
    timed: ServerProcess, sign_in: SignIn, oracle: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = sign_in("alice")
    first, second = (submit(alice, oracle, seconds) for seconds in (0.5, 0.4))
    with Client(timed.base_url, admin_token=timed.admin_token) as client:
        assert client.admin_verify(first).credits_earned == 100
        assert client.task("timed").metrics[0].self_reported is True
    environment = {"PLATFORM_BACKEND": timed.base_url, "ADMIN_TOKEN": timed.admin_token}
    for name, value in environment.items():
        monkeypatch.setitem(timed.environment, name, value)
    shown = timed.run("benchmark", "verify", second)
    assert shown.returncode == 0, shown.stderr
    assert "50" in shown.stdout
    board = timed.run("leaderboard", "timed")
    assert "speed (self-reported)" in board.stdout
    assert "verified" in board.stdout
    assert timed.run("benchmark", "verify", "nothing").returncode != 0
