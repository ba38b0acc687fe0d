"""Publishing on a real hub: whole, once, by the first process, and never with a token in an error."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import signal
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from msgspec import structs
from tests.hub import HubServer, hub, own_hub

from collidium.contracts.storage import StorageUnavailable
from collidium.datasets.access import HubDataset, fetch
from collidium.datasets.cards import MANIFEST, DatasetFile
from collidium.datasets.reading.dataset import Dataset
from collidium.hub.client import Hub, HubRefused, HubUnavailable
from collidium.hub.publishing import PublishingTarget
from collidium.order import Order
from collidium.runtime import logs
from collidium.simulations import publication
from collidium.simulations.output import InvalidOutput, storage_key
from collidium.simulations.publication import (
    Provenance,
    dataset_card,
    manifest,
    publish,
    repository_name,
)
from collidium_plugins.storage_local import LocalStorage

__all__ = ["hub", "own_hub"]

HUB, REPO = "http://hub.example/hub", "ada/ttbar"
ORDER = Order("ttbar", events=6, pileup=0, seed=42)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "storage")


@pytest.fixture
async def provenance(storage: LocalStorage, tmp_path: Path, request: pytest.FixtureRequest) -> Provenance:
    """An output of two tables, one of them in two shards; its request's id is the test's own."""
    request_id = hashlib.md5(request.node.name.encode(), usedforsecurity=False).hexdigest()
    shards = {"particles/train-00000-of-00001": range(6)} | {
        f"tracker_hits/train-0000{n}-of-00002": range(3 * n, 3 * n + 3) for n in range(2)
    }
    files = []
    for name, events in shards.items():
        table = pa.table(
            {
                "event_id": pa.array(events, pa.uint32()),
                "x": pa.array([[float(n)] * 9 for n in events], pa.list_(pa.float32())),
            }
        )
        pq.write_table(table, tmp_path / "table")
        content = (tmp_path / "table").read_bytes()
        path = f"data/ttbar_pu0_{name}.parquet"
        files.append(DatasetFile(path, hashlib.sha256(content).hexdigest(), len(content), len(table)))
        await storage.put(storage_key(request_id, files[-1].sha256), tmp_path / "table")
    return Provenance(request_id, ORDER, "pipeline-v0.1.0", "collidium", HUB, files)


@dataclass(frozen=True)
class Output:
    """A request's output that is kept, and its publication step by step."""

    provenance: Provenance
    storage: LocalStorage
    scratch: Path

    def target(self, server: HubServer, *, private: bool = False) -> PublishingTarget:
        hub = Hub(server.url, server.token("ada"))
        return PublishingTarget(hub, f"ada/collidium-{self.provenance.request_id}", private)

    async def publish(self, to: PublishingTarget) -> str:
        return await publish(self.provenance, to, self.storage, self.scratch)

    async def open_repository(self, to: PublishingTarget) -> str | None:
        self.scratch.mkdir(parents=True, exist_ok=True)
        return await publication.open_repository(self.provenance, to, self.scratch)

    async def upload(self, to: PublishingTarget) -> Any:
        return await publication.upload(self.provenance, to, self.storage, self.scratch)

    async def commit(self, to: PublishingTarget, additions: Any, head: str) -> None:
        await publication.commit(self.provenance, to, additions, head, self.scratch)


@pytest.fixture
def output(provenance: Provenance, storage: LocalStorage, tmp_path: Path) -> Output:
    return Output(provenance, storage, tmp_path / "outputs" / "request")


def commits(server: HubServer, repo: str) -> int:
    return len(server.api("ada").list_repo_commits(repo, repo_type="dataset"))


def no_copy(*_: object) -> NoReturn:
    raise AssertionError("a file was copied")


async def test_what_is_published_is_what_was_kept(
    hub: HubServer, output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = output.target(hub)
    monkeypatch.setattr("shutil.copyfile", no_copy)
    url = await output.publish(to)
    assert url == f"{hub.url}/datasets/{to.repo}"
    api = hub.api(None)
    assert set(api.list_repo_files(to.repo, repo_type="dataset")) - {".gitattributes"} == {
        "README.md",
        MANIFEST,
        *(file.path for file in output.provenance.files),
    }
    copy = Path(api.snapshot_download(to.repo, repo_type="dataset", local_dir=tmp_path / "copy"))
    for file in output.provenance.files:
        content = (copy / file.path).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.size_bytes)
    assert (copy / MANIFEST).read_bytes() == manifest(output.provenance)
    info = api.dataset_info(to.repo)
    assert not info.private
    assert "collidium" in (info.tags or [])
    assert commits(hub, to.repo) == 2, "an empty repository, and then all of it at once"
    assert not output.scratch.exists()


async def test_a_name_that_is_taken_gets_the_request(hub: HubServer, output: Output, tmp_path: Path) -> None:
    """Two orders of one name: the second has a name of its own, however often it is published."""
    other = replace(output, provenance=replace(output.provenance, request_id="f" * 32))
    to = replace(output.target(hub), repo=f"ada/{repository_name(ORDER, date(2026, 11, 22))}-again")
    first = await output.publish(to)
    for file in output.provenance.files:
        await output.storage.get(storage_key(output.provenance.request_id, file.sha256), tmp_path / "copy")
        await output.storage.put(storage_key("f" * 32, file.sha256), tmp_path / "copy")
    assert [await other.publish(to), await other.publish(to)] == [f"{first}-ffffffff"] * 2


def test_a_name_says_what_was_ordered() -> None:
    day = date(2026, 11, 22)
    assert repository_name(Order("ttbar", 10, 0, 1), day) == "ttbar-pu0-10ev-seed1-2026-11-22"
    assert repository_name(Order("t/../x--", 10, 0, 1), day) == "t-x-pu0-10ev-seed1-2026-11-22"
    varied = repository_name(Order("ttbar", 10, 0, 1, "field=0.99"), day)
    assert varied not in (repository_name(Order("ttbar", 10, 0, 1, "field=0.98"), day), "")
    assert varied.startswith("ttbar-pu0-10ev-seed1-vary-")


async def test_the_platforms_own_readers_find_the_tables(
    hub: HubServer, output: Output, tmp_path: Path
) -> None:
    to = output.target(hub)
    await output.publish(to)
    fetched = await fetch(HubDataset(to.repo, hub.url), ["particles", "tracker_hits"], tmp_path / "cache")
    dataset = Dataset(fetched.directory)
    assert dataset.configs() == {"ttbar_pu0": ("particles", "tracker_hits")}
    assert dataset.table("tracker_hits").event_ids.tolist() == list(range(6))


async def test_publishing_again_changes_nothing(hub: HubServer, output: Output) -> None:
    to = output.target(hub)
    url = await output.publish(to)
    before = hub.api("ada").dataset_info(to.repo).sha
    assert await output.publish(to) == url
    # Not even the kept files are needed to see that.
    for file in output.provenance.files:
        await output.storage.delete(storage_key(output.provenance.request_id, file.sha256))
    assert await output.publish(to) == url
    assert hub.api("ada").dataset_info(to.repo).sha == before


async def test_what_a_user_adds_later_does_not_make_it_unpublished(hub: HubServer, output: Output) -> None:
    to = output.target(hub)
    url = await output.publish(to)
    hub.api("ada").upload_file(
        path_or_fileobj=b"mine", path_in_repo="NOTES.md", repo_id=to.repo, repo_type="dataset"
    )
    assert await output.publish(to) == url


@pytest.mark.parametrize(("more", "is_read"), [(60_000, True), (100_000, False)])
async def test_a_manifest_is_read_only_if_it_could_be_ours(
    hub: HubServer, output: Output, more: int, is_read: bool
) -> None:
    of_request = output.target(hub)
    hub.api("ada").create_repo(of_request.repo, repo_type="dataset")
    hub.api("ada").upload_file(
        path_or_fileobj=manifest(output.provenance) + b" " * more,
        path_in_repo=MANIFEST,
        repo_id=of_request.repo,
        repo_type="dataset",
    )
    other = f"{of_request.url}-{output.provenance.request_id[:8]}"
    assert await output.publish(of_request) == (of_request.url if is_read else other)
    assert not output.scratch.exists()


async def test_a_killed_publication_is_completed_by_another(own_hub: HubServer, output: Output) -> None:
    to = output.target(own_hub)
    head = await output.open_repository(to)
    assert head is not None
    await output.upload(to)
    assert set(own_hub.api("ada").list_repo_files(to.repo, repo_type="dataset")) <= {".gitattributes"}
    uploaded = {path: path.stat().st_ino for path in own_hub.blobs}
    assert len(uploaded) >= len(output.provenance.files)
    assert await output.publish(to) == to.url
    assert {path: path.stat().st_ino for path in uploaded} == uploaded, "contents are not sent again"


async def test_a_commit_whose_answer_is_lost_is_found(hub: HubServer, output: Output) -> None:
    to = output.target(hub)
    head = await output.open_repository(to) or ""
    for _ in range(2):  # the second time on top of a head that is no longer there
        additions = await output.upload(to)
        await output.commit(to, additions, head)
    assert await output.open_repository(to) is None


async def test_of_publishers_at_once_one_commits(hub: HubServer, output: Output) -> None:
    to = output.target(hub)
    urls = await asyncio.gather(*(output.publish(to) for _ in range(4)))
    assert urls == [to.url] * 4
    titles = [commit.title for commit in hub.api("ada").list_repo_commits(to.repo, repo_type="dataset")]
    assert titles.count(f"Simulation {output.provenance.request_id}") == 1
    assert not output.scratch.exists()


async def test_a_foreign_commit_is_never_overwritten(hub: HubServer, output: Output) -> None:
    to = output.target(hub)
    head = await output.open_repository(to) or ""
    additions = await output.upload(to)
    hub.api("ada").upload_file(
        path_or_fileobj=b"# Mine", path_in_repo="README.md", repo_id=to.repo, repo_type="dataset"
    )
    with pytest.raises(HubRefused, match="with other content"):
        await output.commit(to, additions, head)
    assert await output.publish(to) != to.url


async def test_a_private_dataset_never_goes_into_a_public_repository(hub: HubServer, output: Output) -> None:
    to = output.target(hub, private=True)
    hub.api("ada").create_repo(to.repo, repo_type="dataset", private=False)
    other = f"{to.repo}-{output.provenance.request_id[:8]}"
    assert await output.publish(to) == f"{hub.url}/datasets/{other}"
    assert hub.api("ada").dataset_info(other).private
    assert not hub.api("ada").list_repo_files(to.repo, repo_type="dataset")[1:]


async def test_a_hub_that_is_down_is_a_matter_of_time(own_hub: HubServer, output: Output) -> None:
    to = output.target(own_hub)
    own_hub.end(signal.SIGKILL)
    with pytest.raises(HubUnavailable) as caught:
        await output.publish(to)
    assert own_hub.token("ada") not in f"{caught.value!r} {caught.value} {to!r}"
    assert not output.scratch.exists()
    own_hub.start()
    assert await output.publish(to) == to.url


async def test_neither_tokens_nor_signed_addresses_are_logged(
    hub: HubServer, output: Output, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, level = logging.getLogger(), logging.getLogger().level
    monkeypatch.setattr(root, "handlers", [])
    to = output.target(hub)
    logs.configure("debug", "text")
    try:
        await output.publish(to)
        with pytest.raises(HubRefused):
            await output.publish(replace(to, repo="bob/events"))
    finally:
        root.setLevel(level)
    logged = capsys.readouterr().err
    assert to.hub.token not in logged
    assert "http" not in logged


async def test_output_that_is_gone_or_damaged_is_never_published(
    hub: HubServer, output: Output, tmp_path: Path
) -> None:
    to = output.target(hub)
    key = storage_key(output.provenance.request_id, output.provenance.files[-1].sha256)
    (tmp_path / "damaged").write_bytes(b"PAR1")
    await output.storage.put(key, tmp_path / "damaged")
    with pytest.raises(StorageUnavailable, match="another file"):  # its failure: tried again
        await output.publish(to)
    await output.storage.delete(key)
    with pytest.raises(InvalidOutput, match="no longer in the storage"):
        await output.publish(to)
    assert set(hub.api("ada").list_repo_files(to.repo, repo_type="dataset")) <= {".gitattributes"}
    assert not output.scratch.exists()


# -- the card -----------------------------------------------------------------------------------------------


def front_matter(card: str) -> dict[str, object]:
    _, text, _ = card.split("---\n", 2)
    document = yaml.safe_load(text)
    assert isinstance(document, dict)
    return document


def test_the_card_names_the_origin_of_the_events(provenance: Provenance) -> None:
    varied = structs.replace(provenance.order, vary="field=0.99")
    card = dataset_card(replace(provenance, order=varied, facts={"Cross section": "604 pb"}), REPO)
    assert "| Cross section | 604 pb |" in card
    assert "| systematic variation | field=0.99 |" in card
    assert json.loads(manifest(replace(provenance, order=varied)))["vary"] == "field=0.99"
    assert front_matter(card) == {
        "pretty_name": "ttbar: 6 events at pileup 0",
        "license": "cc-by-4.0",
        "tags": ["collidium", "particle-physics", "simulation", "ttbar"],
        "task_categories": ["other"],
        "size_categories": ["n<1K"],
        "configs": [
            {
                "config_name": f"ttbar_pu0_{table}",
                "data_files": [{"split": "train", "path": f"data/ttbar_pu0_{table}/*.parquet"}],
            }
            for table in ("particles", "tracker_hits")
        ],
        "event_splits": {"ttbar_pu0": {"train": "0:5", "validation": "5:6"}},
    }
    assert "| seed | 42 |" in card
    assert "| pipeline | pipeline-v0.1.0 |" in card
    assert f"| request | {provenance.request_id} |" in card
    for file in provenance.files:
        assert file.sha256 in card


def test_hostile_words_stay_words(provenance: Provenance) -> None:
    hostile = '"]\n---\nlicense: mine\n| <script> `x` [a](javascript:b) *'
    card = dataset_card(
        replace(provenance, pipeline_version=hostile, order=structs.replace(ORDER, channel=hostile)), REPO
    )
    assert front_matter(card)["license"] == "cc-by-4.0"
    assert front_matter(card)["pretty_name"] == f"{' '.join(hostile.split())}: 6 events at pileup 0"
    body = card.split("---\n", 2)[2]
    assert "<script>" not in body
    assert "](javascript" not in body


def test_a_long_list_of_files_is_left_to_the_manifest(provenance: Provenance) -> None:
    files = [DatasetFile(f"data/a_pu0_hits/train-{n:05}.parquet", f"{n:064}", 1, 1) for n in range(5000)]
    card = dataset_card(replace(provenance, files=files), REPO)
    assert "and 4,900 more" in card
    assert len(card) < 50_000
    assert len(json.loads(manifest(replace(provenance, files=files)))["files"]) == 5000
