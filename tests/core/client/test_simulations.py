"""Clients order events from a real server and wait for them, through failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from threading import Thread

import pytest

from collidium.client import AsyncClient, Client, SimulationRequest
from collidium.testing.server import ServerProcess

from .servers import answering, hanging_up, relaying, response, serving

_seeds = count(1)

MUONS = {"channel": "single_muon", "events": 10, "pileup": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    env = {
        "PLATFORM_MOCK_SECONDS": "0.3",
        "PLATFORM_BURST_REQUESTS": "1000",
        # What a killed server was at is taken up again so soon.
        "PLATFORM_LEASE_SECONDS": "1",
    }
    with ServerProcess(tmp_path_factory.mktemp("server"), env=env) as running:
        yield running


def test_order_and_wait(client: Client) -> None:
    reports: list[SimulationRequest] = []
    before = client.me().credits
    ordered = client.simulate(**MUONS, seed=next(_seeds))
    assert (ordered.state, ordered.cached, ordered.has_ended) == ("queued", False, False)
    assert ordered.credits_charged == client.estimate("single_muon", 10, 0).credits == Decimal("0.014")
    done = client.wait(ordered.request_id, timeout=60, on_change=reports.append)
    assert done.state == "completed"
    assert done.has_ended
    assert done.output_is_mock
    assert [moment.state for moment in done.timeline] == ["queued", "running", "completed"]
    assert reports[-1] == done
    assert [seen.state for seen in reports] == sorted({seen.state for seen in reports}, key=ORDER.index)
    assert client.request(ordered.request_id) == done
    again = client.simulate("single_muon", 10, 0, seed=done.seed)
    assert (again.request_id, again.cached, again.credits_charged) == (done.request_id, True, 0)
    assert client.me().credits == before - ordered.credits_charged


ORDER = ["queued", "running", "completed"]


# -- what happens on the way --------------------------------------------------------------------------


def test_an_order_whose_answer_got_lost_is_paid_for_once(
    server: ServerProcess, client: Client, token: str
) -> None:
    before = client.me().credits
    lost, heard = relaying(server.base_url, answer=False), relaying(server.base_url)
    with serving(lost, heard) as proxy, Client(proxy, token) as unlucky:
        ordered = unlucky.simulate(**MUONS, seed=next(_seeds))
    assert client.me().credits == before - ordered.credits_charged
    assert client.requests(limit=1)[0].request_id == ordered.request_id


AWAY = response("503 Service Unavailable", b"{}", "application/problem+json", "Retry-After: 0")
BROKEN_PROXY = response("502 Bad Gateway", b"<html>", "text/html")


async def test_waiting_goes_on_while_the_server_is_away(
    server: ServerProcess, client: Client, token: str
) -> None:
    request_id = client.simulate(**MUONS, seed=next(_seeds)).request_id
    client.wait(request_id)
    good = relaying(server.base_url)
    for trouble in ([answering(AWAY)], [answering(BROKEN_PROXY)], [hanging_up] * 3):
        with serving(*trouble, good) as proxy, Client(proxy, token) as unlucky:
            assert unlucky.wait(request_id).state == "completed"
    with serving(answering(AWAY), good) as proxy:
        async with AsyncClient(proxy, token) as unlucky_too:
            assert (await unlucky_too.wait(request_id)).state == "completed"


def test_waiting_survives_a_restart_of_the_server(server: ServerProcess, client: Client) -> None:
    request_id = client.simulate(**MUONS, seed=next(_seeds)).request_id
    server.kill()
    seen: list[SimulationRequest] = []
    waiter = Thread(target=lambda: seen.append(client.wait(request_id, timeout=60)))
    waiter.start()
    server.start(port=int(server.base_url.rpartition(":")[2]))
    waiter.join(60)
    assert [request.state for request in seen] == ["completed"]


def test_waiting_past_the_deadline_raises(server: ServerProcess, token: str) -> None:
    queued = json.dumps(
        {
            **MUONS,
            "request_id": "0" * 32,
            "hub_username": "alice",
            "seed": 1,
            "state": "queued",
            "created_at": "2026-11-01T00:00:00Z",
            "credits_charged": 0.014,
            "credits_refunded": 0.0,
            "estimated_node_hours": 0.014,
            "node_hours": 0.014,
        }
    ).encode()
    answers = [answering(response("200 OK", queued, "application/json"))] * 2
    with (
        serving(*answers) as proxy,
        Client(proxy, token) as client,
        pytest.raises(TimeoutError, match="queued"),
    ):
        client.wait("0" * 32, timeout=0.01)
