"""Events read in place by range requests, from a real hub behind a proxy that counts, without a cache."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, tables_of
from tests.documents import ROOT, code_blocks

from collidium import datasets
from collidium.contracts.digest import event_digests, together
from collidium.errors import ConfigurationError, NotFound, Unavailable, UnusableDataset, UpstreamError
from collidium.hub import reader
from collidium.runtime.waiting import Backoff
from collidium.scoring.bench import loaders
from collidium.scoring.bench.data_loading import Slice, time_slice

from .conftest import HubServer
from .hub_proxy import HubProxy, hub_proxy

OWNER = "hedwig"
TABLES = tables_of(range(30), hits=900)

#: The one that the documents show: it reads whole shards from disk, and leaves the hub to ours.
(SHOWN,) = (
    block.code
    for block in code_blocks(ROOT / "docs/benchmarks.md")
    if block.section == "Measuring data loading" and block.language == "python"
)


@pytest.fixture(scope="module")
def repo(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A private repository with thirty events of about 40 kB in shards of ten."""
    source = events.write(tmp_path_factory.mktemp("events"), TABLES, events_per_shard=10)
    api = hub.api(OWNER)
    name = api.create_repo(f"{OWNER}/in-place", repo_type="dataset", private=True).repo_id
    api.upload_folder(repo_id=name, repo_type="dataset", folder_path=str(source))
    return str(name)


@pytest.fixture
def proxy(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubProxy]:
    quick = Backoff(first=timedelta(milliseconds=1), longest=timedelta(milliseconds=5))
    monkeypatch.setattr(reader, "BACKOFF", quick)
    with hub_proxy(hub.url) as before:
        yield before


@pytest.fixture
def part(hub: HubServer, proxy: HubProxy, repo: str, tmp_path: Path) -> Slice:
    """Twelve events that lie in two of the three shards, which were downloaded."""
    place = datasets.HubDataset(repo, proxy.url, token=hub.token(OWNER))
    fetched = datasets.download(place, CONFIG, ["tracker_hits"], "4:16", cache=tmp_path / "cache")
    proxy.forget()
    return Slice(place, fetched, CONFIG, "tracker_hits", range(4, 16))


def test_what_is_read_in_place_is_what_was_downloaded(part: Slice, proxy: HubProxy, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    streamed = loaders.load(part.from_hub())
    assert streamed.equals(loaders.load(part.from_disk()))
    assert streamed.column("event_id").to_pylist() == [*range(4, 16)]
    assert sorted(tmp_path.rglob("*")) == before
    asked = proxy.files_asked()
    assert all(request.byte_range for request in asked)
    shards = part.fetched.shards[part.table]
    sizes = sum((part.fetched.directory / path).stat().st_size for path in shards)
    footers = len(shards) * 70_000  # each is looked for in so much of the end
    assert proxy.bytes_sent < sizes + footers


def test_a_connection_that_breaks_is_asked_again(part: Slice, proxy: HubProxy) -> None:
    proxy.cut["tracker_hits"] = 1
    proxy.refuse["tracker_hits"] = [503, 429]
    assert loaders.load(part.from_hub()).num_rows == 12


def test_a_hub_that_stays_down_is_reported(part: Slice, proxy: HubProxy) -> None:
    proxy.refuse["tracker_hits"] = [503] * 20
    with pytest.raises(Unavailable, match="answered 503"):
        loaders.load(part.from_hub())


def test_a_hub_without_ranges_is_reported(part: Slice, proxy: HubProxy) -> None:
    proxy.without_ranges = True
    with pytest.raises(UpstreamError, match=r"not support range requests for train-0000\d-of-00003.parquet"):
        loaders.load(part.from_hub())


def test_a_shard_that_comes_damaged_is_reported(part: Slice, proxy: HubProxy) -> None:
    proxy.damage["tracker_hits"] = 100
    with pytest.raises(UnusableDataset, match="cannot be read as parquet"):
        loaders.load(part.from_hub())


def test_who_may_not_read_it_does_not(part: Slice) -> None:
    place = datasets.HubDataset(part.place.repo, part.place.endpoint, token=None)
    with pytest.raises(NotFound, match="if it is private, log in"):
        loaders.load(Slice(place, part.fetched, part.config, part.table, part.events).from_hub())


def test_no_token_is_shown(part: Slice) -> None:
    assert part.place.token
    assert part.place.token not in repr(part.from_hub())


def test_a_slice_is_read_from_both_places(part: Slice, proxy: HubProxy) -> None:
    reports: list[tuple[str, int, int]] = []
    times = time_slice(part, loaders.load, repeats=2, progress=lambda *step: reports.append(step))
    assert reports == [("disk", 1, 2), ("disk", 2, 2), ("hub", 1, 2), ("hub", 2, 2)]
    (row,) = times.predictions().to_pylist()
    hits = TABLES["tracker_hits"].slice(4, 12)
    assert (row["event_id"], row["events"]) == (4, 12)
    assert row["digest"] == together(event_digests(hits))
    assert row["seconds_local"] == times.local.median > 0
    assert row["seconds_streaming"] == times.streaming.median > 0
    assert proxy.bytes_sent > 0


def test_missing_events_are_reported_before_any_timing(part: Slice) -> None:
    more = Slice(part.place, part.fetched, part.config, part.table, range(4, 40))
    with pytest.raises(UnusableDataset, match="lacks 20 of the 36 events"):
        time_slice(more, loaders.load, repeats=1)


def test_a_loader_of_ones_own(part: Slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaders_of_mine.py").write_text(SHOWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    times = time_slice(part, loaders.find("loaders_of_mine:load"), repeats=1)
    assert times.events == 12


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("json", "MODULE:FUNCTION"),
        (":load", "MODULE:FUNCTION"),
        ("no_such_module:load", "cannot be imported: No module named"),
        ("json:no_such_function", "module json has no function no_such_function"),
        ("json:__name__", "module json has no function"),
    ],
)
def test_a_loader_that_is_not_there(address: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        loaders.find(address)
