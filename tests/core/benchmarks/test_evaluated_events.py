"""Which events are scored: those that a truth names, and those with the public rows of one."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from tests.waiting import eventually_async

from collidium.benchmarks import challenges, earlier_truth, truth_versions
from collidium.benchmarks.evaluated import is_evaluated
from collidium.benchmarks.models import Challenge, TruthVersion
from collidium.benchmarks.truth_sketches import SKETCHES
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.row_hashes import Hashes
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Unavailable
from collidium.event_display import StoredEvent
from collidium.platform import Platform
from collidium.scoring.truth.sketches import hashed_tables, hashes_of_events
from collidium.server.worker import background_work
from collidium_plugins.storage_local import LocalStorage

CONFIG = "ttbar_pu0"
SCORED = EventRange(3, 5)


def hashes_of(event: int) -> Hashes:
    dataset = Dataset(EVENTS_DIRECTORY)
    events = EventRange(event, event + 1)
    (hashes,) = hashes_of_events(dataset, hashed_tables(dataset, events), events)
    return hashes


async def is_withheld(
    platform: Platform,
    number: int,
    hashes: Hashes | None = None,
    *,
    repo: str = "ada/order",
    commit: str = "a" * 40,
    config: str = CONFIG,
) -> bool:
    """Whether the truth of an event with these rows is withheld."""

    async def rows(tables: frozenset[str]) -> Hashes:
        assert tables == {"tracker_hits"}
        return np.zeros(0, np.uint64) if hashes is None else hashes

    return await is_evaluated(platform, StoredEvent(repo, commit, config, number), rows)


async def change(**found: Any) -> None:
    """Change the manifest of the truth."""
    row = await TruthVersion.get()
    row.manifest = {name: value for name, value in (row.manifest | found).items() if value is not None}
    await row.save(update_fields=["manifest"])


async def test_events_are_scored_by_content_and_not_by_number(platform: Platform) -> None:
    assert await is_withheld(platform, 3, hashes_of(3))
    assert await is_withheld(platform, 7000, hashes_of(4), config="mine_pu0")
    assert not await is_withheld(platform, 3, hashes_of(1))
    assert not await is_withheld(platform, 3)
    await Challenge.filter(name="tracking").update(listed=False)
    assert not await is_withheld(platform, 3, hashes_of(3))


@pytest.mark.parametrize("name", ["evaluation", "source"])
async def test_events_of_named_commits_are_scored(platform: Platform, name: str) -> None:
    place = {"repository": "org/eval", "revision": "b" * 40, "config": CONFIG}
    await change(**({"source": place} if name == "source" else {"data": {"evaluation": place}}))
    named: dict[str, str] = {"repo": "org/eval", "commit": "b" * 40}
    assert await is_withheld(platform, 3, **named)
    assert not await is_withheld(platform, 2, **named)
    assert not await is_withheld(platform, 3, repo="org/other", commit="b" * 40)
    assert not await is_withheld(platform, 3, repo="org/eval", commit="c" * 40)


async def test_without_sketches_config_and_number_count(platform: Platform) -> None:
    await change(sketches={})
    assert await is_withheld(platform, 3, hashes_of(1))
    assert not await is_withheld(platform, 3, hashes_of(3), config="mine_pu0")


async def test_sketches_are_checked_against_their_hash(platform: Platform) -> None:
    """Another machine fetches them; other bytes, or none, never show an event that may be scored."""
    row = await TruthVersion.get()
    files = await truth_versions.stored_files()
    (key,) = (key for key in files if key.endswith(".sketches"))
    assert files[key] == row.manifest[SKETCHES]["sha256"]
    assert isinstance(platform.storage, LocalStorage)
    path = platform.storage.directory / key
    right = path.read_bytes()
    path.unlink()
    path.write_bytes(right[:-1])
    with pytest.raises(Unavailable, match="is not known now"):
        await is_withheld(platform, 3, hashes_of(1))
    path.unlink()
    assert await is_withheld(platform, 3, hashes_of(1))
    assert not await is_withheld(platform, 1, hashes_of(1))
    path.write_bytes(right)
    assert not await is_withheld(platform, 3, hashes_of(1))


async def test_earlier_truth_gets_sketches_and_is_marked(platform: Platform) -> None:
    """From the stored inputs of models; parts of the truth, too."""
    before = (await TruthVersion.get()).manifest
    await change(sketches=None, is_published=False)
    part = await challenges.public_part(await Challenge.get(name="tracking"), 50)
    await TruthVersion.create(
        task="tracking", version=str(part), manifest=(await TruthVersion.get()).manifest
    )
    assert await is_withheld(platform, 3, hashes_of(1))
    await earlier_truth.describe_earlier(platform)
    for row in await TruthVersion.all():
        assert row.manifest["is_published"] is True
        assert row.manifest[SKETCHES]
        assert row.manifest["tables"] == before["tables"]
    assert await is_withheld(platform, 9, hashes_of(3), config="mine_pu0")
    assert not await is_withheld(platform, 3, hashes_of(1))


async def test_a_starting_server_describes_earlier_truth(platform: Platform) -> None:
    """After a failure, at a next start at the latest: nothing is stored before the sketches are complete."""
    await change(sketches=None, is_published=False)
    inputs = platform.settings.data_dir / "storage" / "inputs"
    inputs.rename(inputs.with_name("away"))
    truth = await TruthVersion.get()
    assert not await earlier_truth._describe(platform, truth)
    assert SKETCHES not in (await TruthVersion.get()).manifest
    inputs.with_name("away").rename(inputs)

    async def is_marked() -> bool:
        manifest = (await TruthVersion.get()).manifest
        return bool(manifest.get(SKETCHES)) and manifest["is_published"]

    async with background_work(platform):
        await eventually_async(is_marked)


async def test_earlier_truth_is_described_once(platform: Platform) -> None:
    """Without any public tables it is marked, so that it is not tried at each start."""
    await change(sketches=None, inputs={}, is_published=False)
    await earlier_truth.describe_earlier(platform)
    row = await TruthVersion.get()
    assert (row.manifest[SKETCHES], row.manifest["is_published"]) == ({}, False)
    shutil.rmtree(platform.settings.data_dir / "storage" / "inputs", ignore_errors=True)
    await earlier_truth.describe_earlier(platform)  # returns: nothing is left to do
