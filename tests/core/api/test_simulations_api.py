"""Ordering events, reading requests and cancelling them over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pytest
from tests.waiting import eventually

from collidium.testing.databases import Databases
from collidium.testing.server import ServerProcess

from .conftest import credits_of, ok, operating, pages_of, signed_in

ENDED = {"completed", "failed", "cancelled"}
JSON = {"Content-Type": "application/json"}
#: Ids that no request has, and texts that no id is.
NO_IDS = ["0" * 32, "x", "a" * 31, "A" * 32, "f" * 5000, "%00", "%ff", "%ed%a0%80", "ä", "1%0a", "..%2f"]


@pytest.fixture(scope="module")
def quick(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose jobs are done soon."""
    env = {"PLATFORM_MOCK_SECONDS": "0.2", "PLATFORM_BURST_REQUESTS": "1000"}
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("quick"), url, env) as server:
        yield server


@pytest.fixture(scope="module")
def slow(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose jobs are not done while a test lasts, and small."""
    env = {
        "PLATFORM_MOCK_SECONDS": "100000",
        "PLATFORM_BURST_REQUESTS": "4",
        "PLATFORM_MAX_EVENTS": "10",
    }
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("slow"), url, env) as server:
        yield server


_serial = count()


@pytest.fixture
def alice(quick: ServerProcess) -> Iterator[httpx.Client]:
    """A new account on the quick server."""
    with signed_in(quick, f"alice{next(_serial)}") as client:
        yield client


@pytest.fixture(scope="module")
def unlucky(quick: ServerProcess) -> Iterator[httpx.Client]:
    """An account that never gets what it asks for."""
    with signed_in(quick, "unlucky") as client:
        yield client


@pytest.fixture
def patient(slow: ServerProcess) -> Iterator[httpx.Client]:
    """A new account on the slow server."""
    with signed_in(slow, f"patient{next(_serial)}") as client:
        yield client


def order(client: httpx.Client, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    body = {"channel": "single_muon", "events": 10, "pileup": 0} | body
    return client.post("/v1/simulate", json=body, headers=headers)


def ended(client: httpx.Client, request_id: str) -> dict[str, Any]:
    """The request, once it has ended."""
    seen: dict[str, Any] = {}

    def look() -> bool:
        seen.update(client.get(f"/v1/requests/{request_id}").json())
        return seen["state"] in ENDED

    eventually(look)
    return seen


# -- ordering -----------------------------------------------------------------------------------------


def test_an_order_is_charged_followed_and_completed(quick: ServerProcess, alice: httpx.Client) -> None:
    price = alice.get("/v1/estimate?channel=single_muon&events=10&pileup=0").json()["credits"]
    answer = order(alice, seed=1)
    placed = ok(answer, 202)
    assert placed["runner_is_mock"]
    assert answer.headers["Location"] == f"/v1/requests/{placed['request_id']}"
    assert (placed["state"], placed["cached"], placed["credits_charged"]) == ("queued", False, price)
    ordered = {"channel": "single_muon", "events": 10, "pileup": 0, "seed": 1}
    assert placed | ordered == placed
    assert [moment["state"] for moment in placed["timeline"]] == ["queued"]
    done = ended(alice, placed["request_id"])
    assert done["state"] == "completed"
    assert [moment["state"] for moment in done["timeline"]] == ["queued", "running", "completed"]
    assert done["output_hub_repo"].rpartition("/")[2].startswith("single_muon-pu0-10ev-seed1-")
    assert done["output_is_mock"]
    assert credits_of(alice) == round(10 - price, 3)
    charge = alice.get("/v1/me/transactions").json()[0]
    assert (charge["delta"], charge["reason"]) == (-price, "simulation_charge")
    token = alice.headers["Authorization"].removeprefix("Bearer ")
    assert token not in answer.text + str(done) + quick.log()


def test_an_unsupported_order_is_never_charged(alice: httpx.Client) -> None:
    """Limits, estimates and orders are those of the pipeline that the command of jobs names."""
    assert "dihiggs" not in alice.get("/v1/limits").json()["channels"]
    before = credits_of(alice)
    for answer in (
        order(alice, channel="dihiggs", vary="colour=2"),
        alice.get("/v1/estimate?channel=dihiggs&events=10&pileup=0&vary=colour=2"),
    ):
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == ["channel", "vary"]
        assert "pipeline acts cannot simulate dihiggs: Pythia has no process" in answer.text
    assert credits_of(alice) == before
    assert alice.get("/v1/requests").json() == []


def test_an_unknown_field_hides_no_other_problem(alice: httpx.Client) -> None:
    for fields, problems in [
        ({"channel": "dihiggs", "vary": "colour=2", "colour": 2}, ["colour", "channel", "vary"]),
        ({"channel": "dihiggs", "events": "many"}, ["events", "channel"]),
        ({"channel": 5, "pileup": -1}, ["channel", "pileup"]),
    ]:
        answer = order(alice, **fields)
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == problems
    answer = alice.post("/v1/simulate", json={"preset": "no-such", "events": 1})
    assert [error["field"] for error in answer.json()["errors"]] == ["events", "preset"]
    assert "there is no preset 'no-such'" in answer.json()["detail"]


def test_a_cached_order_is_free_and_readable_by_its_caller(quick: ServerProcess, alice: httpx.Client) -> None:
    first = order(alice, seed=2).json()["request_id"]
    ended(alice, first)
    with signed_in(quick, "bob-reads") as bob, signed_in(quick, "carol-does-not") as carol:
        for client in (alice, bob):
            before = credits_of(client)
            answer = order(client, seed=2)
            cached = ok(answer)
            assert answer.headers["Location"] == f"/v1/requests/{first}"
            assert (cached["request_id"], cached["cached"], cached["credits_charged"]) == (first, True, 0)
            assert [moment["state"] for moment in cached["timeline"]] == ["queued", "running", "completed"]
            keyed = [order(client, {"Idempotency-Key": "k"}, seed=2) for _ in range(2)]
            assert [(again.status_code, again.json()["cached"]) for again in keyed] == [(200, True)] * 2
            assert credits_of(client) == before
        received, own = (ok(client.get(f"/v1/requests/{first}")) for client in (bob, alice))
        with bob.stream("GET", f"/v1/requests/{first}/progress") as stream:
            watched = json.loads(next(line for line in stream.iter_lines() if line)[len("data: ") :])
        for seen in (received, watched):
            assert (seen["cached"], seen["credits_charged"], seen["credits_refunded"]) == (True, 0, 0)
        assert not own["cached"]
        assert own["credits_charged"] > 0
        assert bob.post(f"/v1/requests/{first}/cancel").status_code == 403
        assert bob.get("/v1/requests").json() == []
        assert carol.get(f"/v1/requests/{first}").status_code == 404
        assert carol.post(f"/v1/requests/{first}/cancel").status_code == 404


def test_a_preset_is_its_three_parameters(alice: httpx.Client) -> None:
    presets = {preset.pop("name"): preset for preset in httpx_get(alice, "/v1/presets")}
    assert (presets["ttbar-quick"]["channel"], presets["ttbar-quick"]["events"]) == ("ttbar", 10)
    assert presets["ttbar-quick"]["pileup"] == 0
    by_name = ok(alice.post("/v1/simulate", json={"preset": "muons-quick", "seed": 3}), 202)
    assert by_name["credits_charged"] == presets["muons-quick"]["credits"]
    ended(alice, by_name["request_id"])
    by_parameters = ok(order(alice, channel="single_muon", events=100, pileup=0, seed=3))
    assert by_parameters["request_id"] == by_name["request_id"]


def httpx_get(server: ServerProcess | httpx.Client, path: str) -> Any:
    """The response to anonymous callers."""
    return ok(httpx.get(f"{server.base_url}{path}", trust_env=False))


def test_the_same_key_again_gives_the_first_answer(patient: httpx.Client) -> None:
    before = credits_of(patient)
    answers = [ok(order(patient, {"Idempotency-Key": "once"}, seed=4), 202) for _ in range(2)]
    assert answers[0]["request_id"] == answers[1]["request_id"]
    assert answers[1]["timeline"][0]["state"] == "queued"
    assert credits_of(patient) == round(before - answers[0]["credits_charged"], 3)
    assert order(patient, {"Idempotency-Key": "once"}, seed=5).status_code == 409


GOOD = '"channel": "single_muon", "events": 10, "pileup": 0'


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("{}", {"channel", "events", "pileup"}),
        (
            '{"channel": 7, "events": "10", "pileup": 0.0, "seed": true, "private": "no", "more": 1}',
            {"channel", "events", "pileup", "seed", "private", "more"},
        ),
        ('{"channel": "single_muon", "events": 10.0, "pileup": NaN}', {"events", "pileup"}),
        ('{"channel": "single_muon", "events": Infinity, "pileup": null}', {"events", "pileup"}),
        ('{"channel": "single_muon", "events": 100001, "pileup": 201}', {"events", "pileup"}),
        ('{"channel": "single_muon", "events": 1' + "0" * 4000 + ', "pileup": 0}', {"events"}),
        ('{"channel": "single_muon\\u0000", "events": 1, "pileup": 0}', {"channel"}),
        ('{"channel": "\\ud800", "events": 1, "pileup": 0}', {"channel"}),
        ("{" + GOOD + ', "seed": 340282366920938463463374607431768211456}', {"seed"}),
        ("{" + GOOD + ', "seed": null}', {"seed"}),
        ("{" + GOOD + ', "webhook_url": "http://example.org/"}', {"webhook_url"}),
        ("{" + GOOD + ', "preset": "ttbar-quick"}', {"channel", "events", "pileup"}),
        ('{"preset": "nothing"}', {"preset"}),
        ('{"preset": ["ttbar-quick"]}', {"preset"}),
        ("[]", None),
        ('"ttbar-quick"', None),
    ],
)
def test_all_that_is_wrong_with_an_order_is_reported_at_once(
    unlucky: httpx.Client, content: str, fields: set[str] | None
) -> None:
    answer = unlucky.post("/v1/simulate", content=content, headers=JSON)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert isinstance(problem["detail"], str)
    if fields is not None:
        assert {item["field"] for item in problem["errors"]} == fields
    assert credits_of(unlucky) == 10
    assert unlucky.get("/v1/requests").json() == []


# -- requests -----------------------------------------------------------------------------------------


def test_requests_come_in_pages_of_the_state_that_was_asked_for(patient: httpx.Client) -> None:
    made = [order(patient, seed=seed).json()["request_id"] for seed in range(200, 204)]
    patient.post(f"/v1/requests/{made[0]}/cancel")
    ended(patient, made[0])
    everything = patient.get("/v1/requests").json()
    assert [request["request_id"] for request in everything] == made[::-1]
    assert everything[0]["timeline"] == []
    assert patient.get("/v1/requests?state=running").json() == []
    pages = pages_of(patient, "/v1/requests?state=queued&limit=2")
    assert [[request["request_id"] for request in page] for page in pages] == [[made[3], made[2]], [made[1]]]
    (cancelled,) = patient.get("/v1/requests?state=cancelled").json()
    assert cancelled["request_id"] == made[0]


@pytest.mark.parametrize(
    "query",
    ["state=lost", "limit=" + "9" * 5000, "cursor=x", "cursor=%ff"],
)
def test_an_invalid_query_of_a_list_is_rejected(unlucky: httpx.Client, query: str) -> None:
    answer = unlucky.get(f"/v1/requests?{query}")
    assert answer.status_code in {404, 422}
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("request_id", NO_IDS)
def test_an_unknown_request_is_404(unlucky: httpx.Client, request_id: str) -> None:
    assert unlucky.get(f"/v1/requests/{request_id}").status_code == 404
    assert unlucky.post(f"/v1/requests/{request_id}/cancel").status_code == 404


def test_a_cancellation_is_202_until_it_is_done_and_then_200(patient: httpx.Client) -> None:
    before = credits_of(patient)
    request_id = order(patient, seed=300).json()["request_id"]
    cancelling = ok(patient.post(f"/v1/requests/{request_id}/cancel"), 202)
    assert cancelling["cancel_requested"]
    assert "cancel requested" in cancelling["timeline"][-1]["reason"]
    done = ended(patient, request_id)
    assert done["state"] == "cancelled"
    assert done["credits_refunded"] == done["credits_charged"]
    assert credits_of(patient) == before
    again = patient.post(f"/v1/requests/{request_id}/cancel")
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")


# -- before paying ------------------------------------------------------------------------------------


def test_an_estimate_needs_no_account(quick: ServerProcess) -> None:
    found = httpx_get(quick, "/v1/estimate?channel=zmumu&events=100&pileup=50")
    assert (found["node_seconds"], found["credits"], found["node_hours"]) == (6000, 1.667, 1.667)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("", {"channel", "events", "pileup"}),
        ("channel=ttbar&events=ten&pileup=1.5", {"events", "pileup"}),
        ("channel=ttbar&events=" + "9" * 4000 + "&pileup=nan", {"events", "pileup"}),
        ("channel=%ed%a0%80&events=1&pileup=0", {"channel"}),
    ],
)
def test_an_estimate_of_nothing_is_422(quick: ServerProcess, query: str, fields: set[str]) -> None:
    answer = httpx.get(f"{quick.base_url}/v1/estimate?{query}", trust_env=False)
    assert answer.status_code == 422
    assert {item["field"] for item in answer.json()["errors"]} <= fields


def test_limits_are_those_of_orders(slow: ServerProcess, patient: httpx.Client) -> None:
    limits = httpx_get(slow, "/v1/limits")
    assert "single_muon" in limits["channels"]
    assert limits["events"] == {"minimum": 1, "maximum": 10}
    assert limits["seed"]["minimum"] <= limits["default_seed"] <= limits["seed"]["maximum"]
    for name in ("events", "pileup", "seed"):
        ends = limits[name]
        beyond = order(patient, **{name: ends["maximum"] + 1}), order(patient, **{name: ends["minimum"] - 1})
        assert [[e["field"] for e in answer.json()["errors"]] for answer in beyond] == [[name]] * 2
    furthest = {name: limits[name]["maximum"] for name in ("events", "pileup", "seed")}
    assert order(patient, **furthest).status_code == 202


def test_unavailable_presets_are_not_listed(slow: ServerProcess) -> None:
    found = httpx_get(slow, "/v1/presets")
    assert found
    assert {preset["events"] for preset in found} == {10}


def test_orders_are_counted(quick: ServerProcess, alice: httpx.Client) -> None:
    before = orders_counted(quick)
    ended(alice, order(alice, seed=10).json()["request_id"])
    order(alice, seed=10)
    after = orders_counted(quick)
    assert {answer: after[answer] - before.get(answer, 0) for answer in after} == {"queued": 1, "cached": 1}


def orders_counted(server: ServerProcess) -> dict[str, float]:
    """How many orders were answered, by answer."""
    with operating(server) as operator:
        text = operator.get("/metrics").text
    line = re.compile(r'^collidium_simulation_orders_total\{answer="(\w+)"\} (\S+)$', re.MULTILINE)
    return {answer: float(number) for answer, number in line.findall(text)}
