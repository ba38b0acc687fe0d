"""Operator actions with an Idempotency-Key are performed once, repeated or concurrent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from collidium.runtime.failpoints import VARIABLE
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import OpenPlatform, name_of, ok, operating, parquet, refused, signed_in

_serial = count()


@pytest.fixture(scope="module")
def platform(open_timed: OpenPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with something to verify, to close and to cancel."""
    with open_timed(tmp_path_factory.mktemp("server"), {"PLATFORM_MOCK_SECONDS": "3600"}) as server:
        with operating(server) as admin:
            ok(admin.patch("/admin/challenges/tracking", json={"public_percent": 50}))
        yield server


def new_key() -> dict[str, str]:
    return {"Idempotency-Key": f"key-{next(_serial)}"}


def grant(client: httpx.Client, name: str, headers: dict[str, str], delta: float = 1) -> httpx.Response:
    body = {"hub_username": name, "delta": delta, "reason": "a talk"}
    return client.post("/admin/grant", json=body, headers=headers)


def test_a_rejected_action_does_not_use_its_key_up(alice: httpx.Client, operator: httpx.Client) -> None:
    name, key = name_of(alice), new_key()
    assert grant(operator, name, key, -11).status_code == 409
    assert grant(operator, name, key, -10).status_code == 200


def test_a_preview_of_refunds_does_not_use_its_key_up(operator: httpx.Client) -> None:
    """A preview changes nothing, so that the same key may still pay for what it showed."""
    key, begin = new_key(), datetime.now(UTC) - timedelta(hours=3)
    for hours in (1, 2):
        window = {"from": begin.isoformat(), "to": (begin + timedelta(hours=hours)).isoformat()}
        ok(operator.post("/admin/refunds", json=window, headers=key))


#: What is sent, and what is something else; made from the account that it is done to.
Action = tuple[str, dict[str, Any], str, dict[str, Any]]


def _grant(alice: httpx.Client, operator: httpx.Client, oracle: pa.Table) -> Action:
    body = {"hub_username": name_of(alice), "delta": 1, "reason": "x"}
    return "/admin/grant", {"json": body}, "/admin/grant", {"json": body | {"delta": 2}}


def _freeze(alice: httpx.Client, operator: httpx.Client, oracle: pa.Table) -> Action:
    return "/admin/freeze", {"params": {"frozen": True}}, "/admin/freeze", {"params": {"frozen": False}}


def _cancel(alice: httpx.Client, operator: httpx.Client, oracle: pa.Table) -> Action:
    ordered = alice.post("/v1/simulate", json={"channel": "single_muon", "events": 10, "pileup": 0})
    path = f"/admin/requests/{ordered.json()['request_id']}/cancel"
    return path, {}, f"/admin/requests/{'0' * 32}/cancel", {}


def _verify(alice: httpx.Client, operator: httpx.Client, oracle: pa.Table) -> Action:
    timed = parquet(oracle.append_column("seconds", pa.array(np.full(oracle.num_rows, 1.0))))
    sent = alice.post("/v1/benchmark/timed/submit", content=timed).json()
    path = f"/admin/submissions/{sent['submission_id']}/verify"
    return path, {}, "/admin/submissions/another/verify", {}


def _close(alice: httpx.Client, operator: httpx.Client, oracle: pa.Table) -> Action:
    return "/admin/challenges/tracking/close", {}, "/admin/challenges/timed/close", {}


def actions(operator: httpx.Client) -> int:
    """How many there were of operators; what dates did comes when it comes."""
    return sum(line["actor"] != "calendar" for line in operator.get("/admin/audit").json())


def _refund(alice: httpx.Client, operator: httpx.Client, oracle: pa.Table) -> Action:
    end = datetime.now(UTC)
    body = {"from": (end - timedelta(days=1)).isoformat(), "to": end.isoformat()}
    seen = operator.post("/admin/refunds", json=body).json()
    body |= {"apply": True, "digest": seen["digest"]}
    return "/admin/refunds", {"json": body}, "/admin/refunds", {"json": body | {"note": "the hub was down"}}


@pytest.mark.parametrize(
    ("make", "lines"),
    [
        (_grant, 1),
        (_cancel, 1),
        (_verify, 1),
        (_close, 1),
        (_refund, 0),  # nothing failed
        (_freeze, 1),  # the last one: the platform stays frozen
    ],
)
def test_each_action_is_performed_once_for_its_key(
    make: Callable[[httpx.Client, httpx.Client, pa.Table], Action],
    lines: int,
    alice: httpx.Client,
    operator: httpx.Client,
    oracle: pa.Table,
) -> None:
    path, sent, other_path, other = make(alice, operator, oracle)
    key, before = new_key(), actions(operator)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: operator.post(path, headers=key, **sent), range(4)))
    answers.append(operator.post(path, headers=key, **sent))
    assert {(answer.status_code, answer.text) for answer in answers} == {
        (answers[0].status_code, answers[0].text)
    }
    assert answers[0].is_success, answers[0].text
    assert answers[0].headers["Content-Type"] == answers[-1].headers["Content-Type"] == "application/json"
    refused(operator.post(other_path, headers=key, **other), 409, "Idempotency-Key")
    assert actions(operator) == before + lines


def test_every_action_is_documented_with_its_key(operator: httpx.Client) -> None:
    paths = operator.get("/openapi.json").json()["paths"]
    actions = {
        (path, method): {parameter["name"] for parameter in operation.get("parameters", [])}
        for path, operations in paths.items()
        for method, operation in operations.items()
        if path.startswith("/admin/") and method != "get"
    }
    # Their answers have secrets, which are kept nowhere.
    del actions["/admin/operators", "post"]
    del actions["/admin/challenges/{challenge}/invitations", "post"]
    assert len(actions) >= 7
    assert [action for action, names in actions.items() if "Idempotency-Key" not in names] == []


@pytest.mark.parametrize("failpoint", ["operate.before_commit", "operate.after_commit"])
def test_a_grant_that_is_killed_and_repeated_is_one(failpoint: str, start_server: StartServer) -> None:
    armed = start_server({VARIABLE: failpoint})
    with signed_in(armed, "alice") as alice:
        assert alice.get("/v1/me").json()["credits"] == 10
    key = new_key()
    with operating(armed) as operator, pytest.raises(httpx.RemoteProtocolError):
        grant(operator, "alice", key)
    armed.close()
    with operating(start_server(), armed.admin_token) as operator:
        answers = [grant(operator, "alice", key).json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert operator.get("/admin/accounts/alice").json()["credits"] == 11
