"""``/v1/me/webhook``, and deliveries at the end of a request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest
import trustme
from standardwebhooks import Webhook
from tests.core.outbox.receiver import Receiver, notifying, receiving
from tests.waiting import eventually

from collidium.testing.databases import Databases
from collidium.testing.server import ServerProcess

from .conftest import import_truth, ok, pages_of, parquet, refused, signed_in, spoiled

PATH = "/v1/me/webhook"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def receiver(authority: trustme.CA) -> Iterator[Receiver]:
    with receiving(authority, "127.0.0.1") as receiver:
        yield receiver


@pytest.fixture(scope="module")
def platform(
    _databases: Databases, tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA
) -> Iterator[ServerProcess]:
    """A server that may notify receivers on loopback."""
    directory = tmp_path_factory.mktemp("server")
    env = notifying(authority, directory)
    with _databases.migrated() as url, ServerProcess(directory, url, env) as server:
        yield server


def test_the_secret_is_shown_once(alice: httpx.Client, receiver: Receiver) -> None:
    assert alice.get(PATH).status_code == 404
    first = alice.put(PATH, json={"url": receiver.url()})
    assert first.headers["Cache-Control"] == "no-store"
    made = ok(first)
    assert set(made) == {"url", "created_at", "secret"}
    assert made["secret"].startswith("whsec_")
    assert alice.get(PATH).json() == made | {"secret": None}
    again = alice.put(PATH, json={"url": receiver.url("/other")}).json()
    assert (again["url"], again["secret"]) == (receiver.url("/other"), None)
    rotated = alice.put(PATH, json={"rotate_secret": True}).json()
    assert rotated["url"] == receiver.url("/other")  # left out, it stays
    assert rotated["secret"] not in {None, made["secret"]}
    assert alice.put(PATH, json={"url": None}).json()["url"] is None
    assert alice.delete(PATH).json() == {"removed": True}
    assert alice.delete(PATH).json() == {"removed": False}
    assert alice.get(PATH).status_code == 404
    new = alice.put(PATH, json={}).json()
    assert new["url"] is None
    assert new["secret"] not in {None, made["secret"], rotated["secret"]}


def test_of_many_who_set_it_at_once_one_makes_the_secret(alice: httpx.Client, receiver: Receiver) -> None:
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: alice.put(PATH, json={"url": receiver.url()}), range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len([answer for answer in answers if answer.json()["secret"] is not None]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://127.0.0.1/"},
        {"url": "https://does-not-exist.invalid/"},
        {"rotate_secret": "yes"},
    ],
)
def test_a_bad_body_is_422_and_sets_nothing(alice: httpx.Client, body: object) -> None:
    answer = alice.put(PATH, json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] in {"url", "rotate_secret"}
    assert alice.get(PATH).status_code == 404


def test_the_end_of_a_request_is_reported_and_logged(
    alice: httpx.Client, platform: ServerProcess, receiver: Receiver
) -> None:
    secret = alice.put(PATH, json={"url": receiver.url("/registered")}).json()["secret"]
    order = {"channel": "single_muon", "events": 1, "pileup": 0, "webhook_url": receiver.url("/given")}
    request_id = ok(alice.post("/v1/simulate", json=order), 202)["request_id"]
    eventually(lambda: [delivery["state"] for delivery in _log(alice)] == ["delivered"] * 2)
    eventually(lambda: len(receiver.received) == 2)
    by_path = {request.path: request for request in receiver.received}
    for path in ("/registered", "/given"):
        body = Webhook(secret).verify(by_path[path].body, by_path[path].headers)
        assert body["type"] == "simulation.completed"
        assert body["data"] == alice.get(f"/v1/requests/{request_id}").json()
    first, second = _log(alice)
    assert first["id"] > second["id"]
    assert first["event_id"] == second["event_id"] == by_path["/given"].headers["webhook-id"]
    assert {first["url"], second["url"]} == {receiver.url("/registered"), receiver.url("/given")}
    assert (first["reference"], first["attempts"], first["last_status"]) == (request_id, 1, 204)

    assert pages_of(alice, f"{PATH}/deliveries?limit=1") == [[first], [second]]
    with signed_in(platform, "someone-else") as other:
        assert _log(other) == []


def _log(client: httpx.Client) -> Any:
    return ok(client.get(f"{PATH}/deliveries"))


def test_a_scored_submission_has_errors_of_two_digits(
    platform: ServerProcess, receiver: Receiver, oracle: pa.Table
) -> None:
    import_truth(platform)
    with signed_in(platform, "scored") as alice:
        ok(alice.put(PATH, json={"url": receiver.url("/scored")}))
        ok(alice.patch("/v1/me/notifications", json={"kinds": {"scored": True}}))
        sent = ok(alice.post("/v1/benchmark/tracking/submit", content=parquet(spoiled(oracle, 0.6))))
    eventually(lambda: "/scored" in {request.path for request in receiver.received})
    (delivered,) = (request for request in receiver.received if request.path == "/scored")
    data = json.loads(delivered.body)["data"]
    assert data["submission_id"] == sent["submission_id"]
    errors = data["uncertainties"]
    assert errors == sent["uncertainties"]
    assert len(errors) == 5
    assert all(float(f"{error:.1e}") == error for error in errors.values())


def test_a_webhook_url_needs_a_secret_and_a_good_address(alice: httpx.Client, receiver: Receiver) -> None:
    order = {"channel": "single_muon", "events": 2, "pileup": 0}
    answer = alice.post("/v1/simulate", json={**order, "webhook_url": receiver.url()})
    refused(answer, 422, "PUT /v1/me/webhook")
    answer = alice.post("/v1/simulate", json={**order, "webhook_url": "http://127.0.0.1/"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "webhook_url"
    assert alice.get("/v1/me").json()["credits"] == 10
