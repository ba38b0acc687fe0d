"""Both clients order events from a real server and wait for them, whatever happens on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from threading import Thread

import pytest

from collidium.client import AsyncClient, Client, SimulationRequest
from collidium.errors import Conflict, InvalidInput, NotFound, Unauthenticated, Unreachable
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


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    return server.add_user("alice")


@pytest.fixture
def client(server: ServerProcess, token: str) -> Iterator[Client]:
    with Client(server.base_url, token, server.admin_token) as alice:
        yield alice


def test_order_and_wait(client: Client) -> None:
    told: list[SimulationRequest] = []
    before = client.me().credits
    ordered = client.simulate(**MUONS, seed=next(_seeds))
    assert (ordered.state, ordered.cached, ordered.has_ended) == ("queued", False, False)
    assert ordered.credits_charged == client.estimate("single_muon", 10, 0).credits == Decimal("0.014")
    done = client.wait(ordered.request_id, timeout=60, on_change=told.append)
    assert done.state == "completed"
    assert done.has_ended
    assert done.output_is_mock
    assert [moment.state for moment in done.timeline] == ["queued", "running", "completed"]
    assert told[-1] == done
    assert [seen.state for seen in told] == sorted({seen.state for seen in told}, key=ORDER.index)
    assert client.request(ordered.request_id) == done
    again = client.simulate("single_muon", 10, 0, seed=done.seed)
    assert (again.request_id, again.cached, again.credits_charged) == (done.request_id, True, 0)
    assert client.me().credits == before - ordered.credits_charged


ORDER = ["queued", "running", "completed"]


def test_knobs(client: Client) -> None:
    limits = client.limits()
    assert "single_muon" in limits.channels
    assert (limits.events.minimum, limits.pileup.minimum, limits.default_seed) == (1, 0, 42)


def test_presets(client: Client) -> None:
    presets = {preset.name: preset for preset in client.presets()}
    quick = presets["ttbar-quick"]
    assert (quick.channel, quick.events, quick.pileup) == ("ttbar", 10, 0)
    ordered = client.simulate(preset="muons-quick", seed=next(_seeds), private=True)
    assert ordered.private
    assert (ordered.channel, ordered.events) == ("single_muon", 100)
    assert ordered.credits_charged == presets["muons-quick"].credits


def test_pages_of_requests(client: Client) -> None:
    made = [client.simulate(**MUONS, seed=next(_seeds)).request_id for _ in range(3)]
    first = client.requests(limit=2)
    assert [request.request_id for request in first] == made[:0:-1]
    assert client.requests(limit=1, cursor=first.next_cursor)[0].request_id == made[0]
    for request_id in made:
        client.wait(request_id, timeout=60)
    assert {request.state for request in client.requests(state="completed")} == {"completed"}
    assert not client.requests(state="failed").items


def test_one_key_is_one_order(client: Client) -> None:
    seed = next(_seeds)
    first = client.simulate(**MUONS, seed=seed, idempotency_key="mine")
    assert client.simulate(**MUONS, seed=seed, idempotency_key="mine").request_id == first.request_id
    with pytest.raises(Conflict):
        client.simulate(**MUONS, seed=seed + 1000, idempotency_key="mine")
    for key in ("", "two words", "ä", "k" * 129):
        with pytest.raises(InvalidInput, match="Idempotency-Key"):
            client.simulate(**MUONS, idempotency_key=key)


def test_what_is_refused(client: Client, server: ServerProcess) -> None:
    with pytest.raises(InvalidInput) as caught:
        client.simulate("nothing", 0, -1)
    assert {problem["field"] for problem in caught.value.errors} == {"channel", "events", "pileup"}
    with pytest.raises(InvalidInput):
        client.estimate("nothing", 1, 0)
    with pytest.raises(NotFound):
        client.request("nothing")
    with pytest.raises(NotFound):
        client.wait("nothing")
    done = client.wait(client.simulate(**MUONS, seed=next(_seeds)).request_id)
    with pytest.raises(Conflict):
        client.cancel(done.request_id)
    with Client(server.base_url, "wrong") as stranger, pytest.raises(Unauthenticated):
        stranger.simulate(preset="ttbar-quick")


def test_operators(client: Client) -> None:
    done = client.wait(client.simulate(**MUONS, seed=next(_seeds)).request_id)
    seen = client.admin_request(done.request_id)
    assert (seen.credits_charged, seen.timeline) == (done.credits_charged, done.timeline)
    assert (seen.runner_handle, seen.step, seen.due_at) == (done.request_id, "", None)
    assert client.admin_output(done.request_id).items == ()
    assert client.admin_requests(user="alice", state="completed", channel="single_muon", limit=1)[0].has_ended
    page = client.admin_requests(limit=1)
    assert client.admin_requests(limit=1, cursor=page.next_cursor)[0].request_id != page[0].request_id
    with pytest.raises(Conflict):
        client.admin_cancel(done.request_id)
    usage = client.admin_usage(limit=1)
    assert [user.hub_username for user in usage.users] == ["alice"]
    assert usage.total_requests == usage.users[0].requests
    assert sum(channel.requests for channel in client.admin_channels()) == usage.total_requests
    assert client.admin_channels(month="2001-01").items == ()
    days = client.admin_daily(days=2)
    assert len(days) == 2
    assert days[1].requests == usage.total_requests
    failures = client.admin_failures()
    assert (failures.failed, failures.failure_rate) == (0, 0)
    assert failures.finished > 0
    assert client.admin_failures(month=failures.month) == failures
    assert client.admin_failures(month="2001-01").finished == 0
    with pytest.raises(InvalidInput):
        client.admin_daily(days=0)


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


def test_a_cancellation_that_got_lost_is_not_repeated_unasked(server: ServerProcess, token: str) -> None:
    with serving(hanging_up) as proxy, Client(proxy, token) as unlucky, pytest.raises(Unreachable):
        unlucky.cancel("0" * 32)


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


def test_time_that_is_up(server: ServerProcess, token: str) -> None:
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


async def test_the_async_client_does_the_same(server: ServerProcess, token: str) -> None:
    told: list[str] = []
    async with AsyncClient(server.base_url, token, server.admin_token) as client:
        assert len(await client.presets()) >= 1
        assert (await client.limits()).events.minimum == 1
        assert (await client.estimate("ttbar", 10, 0)).credits == Decimal("0.333")
        ordered = await client.simulate(**MUONS, seed=next(_seeds))
        done = await client.wait(
            ordered.request_id, timeout=60, on_change=lambda seen: told.append(seen.state)
        )
        assert (done.state, told[-1]) == ("completed", "completed")
        assert (await client.request(ordered.request_id)).request_id == ordered.request_id
        assert (await client.requests(limit=1))[0].request_id == ordered.request_id
        seen = await client.admin_request(ordered.request_id)
        assert (seen.runner_handle, seen.timeline) == (done.request_id, done.timeline)
        assert len(await client.admin_requests(limit=1)) == 1
        assert (await client.admin_usage()).total_requests > 0
        assert len(await client.admin_channels()) == 1
        assert len(await client.admin_daily()) == 30
        assert (await client.admin_failures()).failed == 0
        with pytest.raises(Conflict):
            await client.cancel(ordered.request_id)
        with pytest.raises(Conflict):
            await client.admin_cancel(ordered.request_id)
