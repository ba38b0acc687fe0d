"""Datasets and single events over the API: the built-in sample, and its evaluation events."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.client import Client, EventData
from collidium.datasets import sample
from collidium.errors import InvalidInput, NotFound
from collidium.testing.server import ServerProcess

from .conftest import FIRST, import_truth

ALL = ("particles", "tracker_hits", "calo_hits", "tracks")


@pytest.fixture(scope="module")
def client(platform: ServerProcess) -> Iterator[Client]:
    """A client without a token."""
    with Client(platform.base_url, token="") as client:
        yield client


def about(event: EventData) -> dict[str, str]:
    """What the tables report of themselves, where all report the same."""
    described = [
        {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
        for table in event.tables().values()
    ]
    assert all({**one, "table": ""} == {**described[0], "table": ""} for one in described)
    return {name: value for name, value in described[0].items() if name != "table"}


def test_a_fresh_server_has_the_sample(client: Client) -> None:
    busy, entry = client.datasets()
    assert (busy.config, busy.events, busy.sample) == ("ttbar_pu40", 1, True)
    assert "jets" in busy.tables
    assert (entry.repo, entry.config, entry.sample) == ("sample", sample.CONFIG, True)
    assert (entry.events, entry.first_event, entry.last_event) == (5, 0, 4)
    assert entry.license == "CC-BY-4.0"
    assert entry.source
    assert "arXiv:2512.15230" in entry.source
    assert entry.tables == ("calo_hits", "particles", "tracker_hits", "tracks")


def test_an_event_has_a_row_for_each_hit(client: Client) -> None:
    event = client.event(sample.CONFIG, 2)
    assert event.media_type == "application/vnd.apache.arrow.stream"
    tables = event.tables()
    assert tuple(tables) == ALL
    stored = pq.read_table(sample.DIRECTORY / "tracker_hits.parquet").slice(2, 1).to_pylist()[0]
    hits = tables["tracker_hits"]
    assert hits.column_names == ["hit_id", "x", "y", "z", "particle_id", "volume_id"]
    for name in hits.column_names:
        assert hits.column(name).to_pylist() == stored[name]
    assert hits.schema.field("x").metadata == {b"unit": b"mm"}
    assert tables["tracks"].column("hit_ids").type == pa.list_(pa.field("item", pa.uint32()))
    assert about(event) == {
        "repo": "sample",
        "config": sample.CONFIG,
        "revision": "local",
        "event_id": "2",
        "field_tesla": "3.0",
    }


def test_only_the_tables_that_are_asked_for_are_sent(client: Client) -> None:
    event = client.event(sample.CONFIG, 2, repo="sample", tables=["tracks", "tracker_hits"])
    assert tuple(event.tables()) == ("tracker_hits", "tracks")


def test_the_truth_of_an_evaluated_event_is_not_sent(client: Client) -> None:
    event = client.event(sample.CONFIG, FIRST)
    assert about(event)["withheld"] == "evaluated"
    tables = event.tables()
    assert tables["tracker_hits"].column_names == ["hit_id", "x", "y", "z", "volume_id"]
    assert tables["calo_hits"].column_names == ["x", "y", "z", "total_energy"]
    assert tables["tracks"].column_names == ["track_id", "d0", "z0", "phi", "theta", "qop", "hit_ids"]
    assert tables["particles"].shape == (0, 0)
    alone = client.event(sample.CONFIG, FIRST, tables=["particles"]).tables()
    assert {name: table.shape for name, table in alone.items()} == {"particles": (0, 0)}


def test_the_order_of_evaluated_hits_reveals_nothing(client: Client) -> None:
    tables = client.event(sample.CONFIG, FIRST).tables()
    hits, tracks = tables["tracker_hits"], tables["tracks"]
    stored = pq.read_table(sample.DIRECTORY / "tracker_hits.parquet").slice(FIRST, 1).to_pylist()[0]
    places = list(zip(stored["volume_id"], stored["x"], stored["y"], stored["z"], strict=True))
    shown = list(zip(*(hits.column(name).to_pylist() for name in ("volume_id", "x", "y", "z")), strict=True))
    assert shown == sorted(places) != places
    assert hits.column("hit_id").to_pylist() == [*range(len(places))]
    # Tracks name the same hits as before, by their new numbers.
    of_tracks = pq.read_table(sample.DIRECTORY / "tracks.parquet").slice(FIRST, 1).to_pylist()[0]["hit_ids"]
    by_id = dict(zip(stored["hit_id"], places, strict=True))
    before = sorted(sorted(by_id[hit] for hit in ids) for ids in of_tracks)
    now = sorted(sorted(shown[hit] for hit in ids) for ids in tracks.column("hit_ids").to_pylist())
    assert now == before


def test_phoenix_gets_no_more_of_an_evaluated_event(client: Client) -> None:
    event = client.event(sample.CONFIG, FIRST, file_format="phoenix")
    assert event.media_type == "application/json"
    assert b"particle" not in event.content
    assert b'"withheld": "evaluated"' in event.content
    with pytest.raises(ValueError, match="no tables of an event"):
        event.tables()


def test_what_was_shown_is_withheld_once_it_is_evaluated(server: ServerProcess) -> None:
    with Client(server.base_url, token="") as client:
        assert "particle_id" in client.event(sample.CONFIG, FIRST).tables()["tracker_hits"].column_names
        import_truth(server)
        shown = client.event(sample.CONFIG, FIRST)
        assert "particle_id" not in shown.tables()["tracker_hits"].column_names
        done = server.run("task", "remove", "tracking")
        assert done.returncode == 0, done.stderr
        assert "withheld" not in about(client.event(sample.CONFIG, FIRST))


def test_an_unchanged_event_is_not_sent_again(platform: ServerProcess) -> None:
    address = f"{platform.base_url}/v1/datasets/{sample.CONFIG}/events/1"
    with httpx.Client(trust_env=False) as http:
        first = http.get(address)
        assert first.headers["Cache-Control"] == "no-cache"
        again = http.get(address, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        other = http.get(address, params={"tables": "tracks"})
        assert other.headers["ETag"] != first.headers["ETag"]


@pytest.mark.parametrize("event_id", ["5", "99999999999", "18446744073709551616", "-1", "1.5", "%C2%B2", "x"])
def test_an_event_that_is_not_there(platform: ServerProcess, event_id: str) -> None:
    answer = httpx.get(f"{platform.base_url}/v1/datasets/{sample.CONFIG}/events/{event_id}", trust_env=False)
    assert answer.status_code == 404
    detail = answer.json()["detail"]
    assert "there are 0 to 4" in detail or "called by its number" in detail


@pytest.mark.parametrize(
    "repo",
    ["sample/..", "../sample", "unknown", "http://127.0.0.1/x/y", "a/b/c", "unknown/nothing", "%2e%2e/x"],
)
def test_no_other_repository_is_opened(client: Client, repo: str) -> None:
    with pytest.raises(NotFound):
        client.event(sample.CONFIG, 1, repo=repo)


def test_an_unknown_config_or_revision_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound, match="no dataset has a config"):
        client.event("ttbar_pu9", 1)
    with pytest.raises(NotFound, match="has no config"):
        client.event("ttbar_pu9", 1, repo="sample")


def test_all_tables_that_are_not_there_are_reported(client: Client) -> None:
    with pytest.raises(InvalidInput) as caught:
        client.event(sample.CONFIG, 1, tables=["tracks", "jets", "../particles"])
    assert [error["detail"] for error in caught.value.errors] == [
        "no table 'jets'",
        "no table '../particles'",
    ]
