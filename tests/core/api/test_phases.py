"""A public part of the events decides the leaderboard until a phase is closed; the rest decides then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pyarrow as pa
import pytest

from collidium.client import Client
from collidium.testing.server import ServerProcess

from .conftest import import_truth, operating, parquet

SignIn = Callable[[str], httpx.Client]
SUBMIT = "/v1/benchmark/tracking/submit"
CLOSE = "/admin/benchmark/tracking/close"
METRIC = "trackml_weighted_efficiency"


@pytest.fixture
def admin(fresh_platform: ServerProcess) -> Iterator[httpx.Client]:
    with operating(fresh_platform) as client:
        yield client


def split(server: ServerProcess, percent: int = 50) -> None:
    done = server.run("benchmark", "split", "tracking", "--public", str(percent))
    assert done.returncode == 0, done.stderr


def good_at(oracle: pa.Table, event: int) -> bytes:
    """Perfect for one event, nothing for the other."""
    tracks = np.where(oracle["event_id"].to_numpy() == event, oracle["track_id"].to_numpy(), -1)
    return parquet(oracle.set_column(2, "track_id", pa.array(tracks)))


def credits_of(client: httpx.Client) -> float:
    return float(client.get("/v1/me").json()["credits"])


def board(client: httpx.Client) -> dict[str, float]:
    places = client.get("/v1/leaderboard/tracking").json()
    return {place["hub_username"]: place["scores"][METRIC] for place in places}


def test_what_is_held_back_decides_in_the_end(
    fresh_platform: ServerProcess, caller: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    split(fresh_platform)
    alice, bob = caller("alice"), caller("bob")
    receipts = [
        client.post(SUBMIT, content=good_at(oracle, event)).json() for client, event in ((alice, 3), (bob, 4))
    ]
    public = board(alice)
    assert sorted(public.values()) == [0, 1], "each was good at one event, and one event counts"
    (leader, loser) = public
    card = alice.get("/v1/benchmark/tracking").json()
    assert (card["phase"], card["public_percent"]) == ("public", 50)
    assert [credits_of(client) for client in (alice, bob)] == [10, 10], "nothing is earned yet"
    again = bob.post(SUBMIT, content=good_at(oracle, 4)).json()
    assert again == receipts[1] | {"deduplicated": True}

    with ThreadPoolExecutor(4) as threads:
        closed = list(threads.map(lambda _: admin.post(CLOSE), range(4)))
    assert [answer.status_code for answer in closed] == [200] * 4, closed[0].text
    assert len({answer.text for answer in closed}) == 1
    assert list(board(alice).items()) == [(loser, 1), (leader, 0)]
    people = {"alice": alice, "bob": bob}
    assert (credits_of(people[loser]), credits_of(people[leader])) == (110, 10)
    assert [logged["action"] for logged in admin.get("/admin/audit").json()] == ["close", "split"]
    first = alice.get(f"/v1/submissions/{receipts[0]['submission_id']}").json()
    (earlier,) = first["earlier_scores"]
    assert earlier["scores"] == receipts[0]["scores"]
    assert alice.get("/v1/benchmark/tracking").json()["phase"] == "final"
    later = alice.post(SUBMIT, content=parquet(oracle)).json()
    assert (later["scores"][METRIC], later["credits_earned"]) == (1, 0), "the best is there already"
    assert fresh_platform.run("ledger", "audit").returncode == 0


def test_scores_on_what_is_held_back_are_not_revealed(
    fresh_platform: ServerProcess, caller: SignIn, oracle: pa.Table
) -> None:
    """Two files that differ in what is held back alone are answered alike, but for what names the file."""
    split(fresh_platform)
    alice = caller("alice")
    good = {event: alice.post(SUBMIT, content=good_at(oracle, event)).json() for event in (3, 4)}
    public = next(event for event, receipt in good.items() if receipt["scores"][METRIC] == 1)
    whole = alice.post(SUBMIT, content=parquet(oracle)).json()
    names = {"submission_id": "", "sha256": ""}
    assert whole | names == good[public] | names
    board = alice.get("/v1/leaderboard/tracking").json()
    tied = [place for place in board if place["scores"][METRIC] == 1]
    assert [place["submission_id"] for place in tied] == [
        receipt["submission_id"] for receipt in sorted([good[public], whole], key=lambda r: r == whole)
    ]
    assert alice.get(f"/v1/submissions/{whole['submission_id']}").json()["earlier_scores"] == []


def test_a_phase_goes_on_when_the_same_truth_is_imported_again(
    fresh_platform: ServerProcess, caller: SignIn, oracle: pa.Table
) -> None:
    split(fresh_platform)
    alice = caller("alice")
    import_truth(fresh_platform)
    assert alice.get("/v1/benchmark/tracking").json()["phase"] == "public"
    done = fresh_platform.run("benchmark", "rescore", "tracking", "--apply")
    assert done.returncode == 0, done.stderr
    alice.post(SUBMIT, content=parquet(oracle))
    with Client(fresh_platform.base_url, admin_token=fresh_platform.admin_token) as client:
        assert client.admin_close_phase("tracking").phase == "final"
        assert client.task("tracking").phase == "final"
    assert credits_of(alice) == 110


def test_what_cannot_be_split_or_closed(
    fresh_platform: ServerProcess, caller: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    assert httpx.post(f"{admin.base_url}{CLOSE}", trust_env=False).status_code == 401
    assert admin.post(CLOSE).status_code == 409
    for name in ("nothing", "%00", "x" * 500, "%ed%a0%80"):
        assert admin.post(f"/admin/benchmark/{name}/close").status_code == 404
    assert caller("alice").post(SUBMIT, content=parquet(oracle)).status_code == 200
    refused = fresh_platform.run("benchmark", "split", "tracking", "--public", "50")
    assert refused.returncode != 0
    assert "scored on all events already" in refused.stderr
    for percent in ("0", "100", "x"):
        assert fresh_platform.run("benchmark", "split", "tracking", "--public", percent).returncode == 2
    assert fresh_platform.run("benchmark", "split", "nothing", "--public", "50").returncode != 0
    assert admin.get("/admin/audit").json() == []
