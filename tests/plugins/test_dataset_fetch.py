"""Shards fetched from a hub, here the local one, with the hub's own client."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset, HubDataset, fetch
from collidium.errors import NotFound, Unreachable, UnusableDataset

from .conftest import HubServer

# Of the client's own: how it uploads.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:It seems that you are about to commit a data file:UserWarning"),
]


def shard(events: Sequence[int], **options: object) -> bytes:
    table = pa.table({"event_id": pa.array(events, pa.uint32()), "x": [[float(event)] for event in events]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


@pytest.fixture
def source(hub: HubServer, request: pytest.FixtureRequest) -> HubDataset:
    """A dataset of 30 events in three shards, one of them without statistics, and another table."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60]
    api = hub.api("ada")
    repo = api.create_repo(f"ada/{name}", repo_type="dataset").repo_id
    folder = "data/ttbar_pu0_tracker_hits/train"
    files = {
        f"{folder}-00000-of-00003.parquet": shard(range(10)),
        f"{folder}-00001-of-00003.parquet": shard(range(10, 20)),
        f"{folder}-00002-of-00003.parquet": shard(range(20, 30), write_statistics=False),
        "data/ttbar_pu0_particles/train-00000-of-00001.parquet": shard(range(30)),
    }
    for path, content in files.items():
        api.upload_file(
            path_or_fileobj=io.BytesIO(content), path_in_repo=path, repo_id=repo, repo_type="dataset"
        )
    return HubDataset(repo, hub.url, token=hub.token("ada"))


def names(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*.parquet"))


async def test_only_the_shards_of_the_table_and_the_events_are_fetched(
    source: HubDataset, tmp_path: Path
) -> None:
    fetched = await fetch(source, ["tracker_hits"], tmp_path, events=EventRange(12, 15))
    assert len(fetched.revision) == 40
    assert [name[-22:] for name in names(fetched.directory)] == [
        "00001-of-00003.parquet",
        "00002-of-00003.parquet",  # it does not say what it has
    ]
    ((_, tables),) = Dataset(fetched.directory).read(["tracker_hits"], EventRange(12, 15))
    assert tables["tracker_hits"].column("x").to_pylist() == [[12.0], [13.0], [14.0]]


async def test_a_second_fetch_takes_what_is_there(source: HubDataset, tmp_path: Path) -> None:
    first = await fetch(source, ["tracker_hits"], tmp_path, config="ttbar_pu0")
    inodes = [path.stat().st_ino for path in sorted(first.directory.rglob("*.parquet"))]
    second = await fetch(source, ["tracker_hits"], tmp_path)
    assert (second.directory, second.revision) == (first.directory, first.revision)
    assert (len(first.downloaded), second.downloaded, second.downloaded_bytes) == (3, (), 0)
    assert [path.stat().st_ino for path in sorted(first.directory.rglob("*.parquet"))] == inodes
    assert len(inodes) == 3


async def test_events_that_no_shard_can_have_are_told_before_anything_is_fetched(
    source: HubDataset, tmp_path: Path
) -> None:
    with pytest.raises(UnusableDataset, match=r"events 50:60: 50:60 are missing \(events there: 0 to 29\)"):
        await fetch(source, ["particles"], tmp_path, events=EventRange(50, 60))
    assert names(tmp_path) == []


async def test_events_that_a_shard_might_have_are_told_by_the_reader(
    source: HubDataset, tmp_path: Path
) -> None:
    fetched = await fetch(source, ["tracker_hits"], tmp_path, events=EventRange(50, 60))
    with pytest.raises(UnusableDataset, match="lacks 10 of the 10 events 50:60"):
        list(Dataset(fetched.directory).read(["tracker_hits"], EventRange(50, 60)))


async def test_a_repository_that_is_not_there(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="ada/absent"):
        await fetch(HubDataset("ada/absent", hub.url, token=hub.token("ada")), ["particles"], tmp_path)


async def test_a_table_that_is_not_there(source: HubDataset, tmp_path: Path) -> None:
    with pytest.raises(UnusableDataset, match="tracks"):
        await fetch(source, ["tracks"], tmp_path)


async def test_a_hub_that_is_down_is_told_without_its_token(tmp_path: Path) -> None:
    source = HubDataset("ada/data", "http://127.0.0.1:9", token="hf_secret")  # noqa: S106 -- no real one
    with pytest.raises(Unreachable) as raised:
        await fetch(source, ["particles"], tmp_path)
    assert "hf_secret" not in raised.value.detail
