"""Which events are scored: those that a truth names, and those with the public rows of one."""

from __future__ import annotations

import asyncio
import shutil
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.datasets.events import tables_of, write
from tests.hub import HubServer, hub
from tests.waiting import eventually_async, until
from tortoise.exceptions import OperationalError

from collidium import challenges, database
from collidium.challenges import truth_in_use
from collidium.challenges.models import Challenge
from collidium.challenges.truth_in_use import is_evaluated
from collidium.contracts.executor import Opaque
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.row_hashes import Hashes
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Unavailable
from collidium.event_display import RowHashes, StoredEvent
from collidium.files.durable import sha256_of
from collidium.files.held import locked
from collidium.platform import Platform
from collidium.runtime.waiting import Backoff, in_thread
from collidium.scoring.truth import sketches
from collidium.scoring.truth.sketches import Sketches, hashed_tables, hashes_of_events
from collidium.server.worker import background_work, in_background
from collidium.truth import earlier, registry
from collidium.truth.models import TruthVersion
from collidium.truth.sketches import SKETCHES, SketchCache, Stored
from collidium_plugins.storage_local import LocalStorage

from . import models

__all__ = ["hub"]

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
    unread: tuple[str, ...] = (),
) -> bool:
    """Whether the truth of an event with these rows is withheld."""

    async def rows(tables: frozenset[str]) -> RowHashes:
        assert tables == {"tracker_hits"}
        return RowHashes(Opaque(b"" if hashes is None else np.sort(hashes).tobytes()), unread)

    return await is_evaluated(platform, StoredEvent(repo, commit, config, number), rows)


async def change(**found: Any) -> None:
    """Change the manifest of the truth."""
    row = await TruthVersion.get()
    row.manifest = {name: value for name, value in (row.manifest | found).items() if value is not None}
    await row.save(update_fields=["manifest"])


async def test_events_are_scored_by_content_and_not_by_number(platform: Platform) -> None:
    assert await is_withheld(platform, 3, hashes_of(3))
    assert await is_withheld(platform, 7000, hashes_of(4), config="mine_pu0")
    assert not await is_withheld(platform, 3, hashes_of(1), commit="b" * 40)
    assert not await is_withheld(platform, 3, commit="c" * 40)
    await Challenge.filter(name="tracking").update(listed=False)
    assert not await is_withheld(platform, 3, hashes_of(3))


async def test_config_and_number_count_if_a_table_is_not_read(platform: Platform) -> None:
    """Only where the truth has hashes of that table."""
    assert await is_withheld(platform, 3, unread=("tracker_hits",))
    assert await is_withheld(platform, 7000, hashes_of(3), config="mine_pu0", unread=("tracker_hits",))
    assert not await is_withheld(platform, 1, unread=("tracker_hits",))
    assert not await is_withheld(platform, 3, config="mine_pu0", unread=("tracker_hits",))
    assert not await is_withheld(platform, 3, commit="b" * 40, unread=("jets",))


async def test_an_event_is_compared_once(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each file of sketches, and also if several ask at the same time."""
    counts: Counter[str] = Counter()
    has = Sketches.has

    def counted(sketches: Sketches, hashes: Hashes) -> bool:
        counts["compared"] += 1
        return has(sketches, hashes)

    async def rows(tables: frozenset[str]) -> RowHashes:
        counts["hashed"] += 1
        return RowHashes(Opaque(np.sort(hashes_of(3)).tobytes()))

    monkeypatch.setattr(Sketches, "has", counted)
    events = [StoredEvent("ada/order", commit * 40, CONFIG, 7000) for commit in "ab"]
    for number, event in enumerate(events, 1):
        assert await asyncio.gather(*(is_evaluated(platform, event, rows) for _ in range(5))) == [True] * 5
        assert await is_evaluated(platform, event, rows)
        assert counts == {"hashed": number, "compared": number}
    await change(sketches=(await TruthVersion.get()).manifest[SKETCHES] | {"sha256": "0" * 64})
    assert not await is_evaluated(platform, events[0], rows)  # no such file is in the storage


@pytest.mark.parametrize("name", ["evaluation", "source"])
async def test_events_of_named_commits_are_scored(platform: Platform, name: str) -> None:
    place = {"repository": "org/eval", "revision": "b" * 40, "config": CONFIG}
    await change(**({"source": place} if name == "source" else {"data": {"evaluation": place}}))
    named = partial(is_withheld, platform, repo="org/eval", commit="b" * 40)
    assert await named(3)
    assert not await named(2)
    assert not await is_withheld(platform, 3, repo="org/other", commit="b" * 40)
    assert not await is_withheld(platform, 3, repo="org/eval", commit="c" * 40)


async def test_without_sketches_config_and_number_count(platform: Platform) -> None:
    await change(sketches={})
    assert await is_withheld(platform, 3, hashes_of(1))
    assert not await is_withheld(platform, 3, hashes_of(3), config="mine_pu0")


async def test_sketches_are_checked_against_their_hash(platform: Platform) -> None:
    """Another machine fetches them; other bytes, or none, never show an event that may be scored."""
    row = await TruthVersion.get()
    files = await truth_in_use.stored_files()
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
    await earlier.describe_all(platform, truth_in_use.versions)
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
    assert not await earlier._describe(platform, truth)
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
    await earlier.describe_all(platform, truth_in_use.versions)
    row = await TruthVersion.get()
    assert (row.manifest[SKETCHES], row.manifest["is_published"]) == ({}, False)
    shutil.rmtree(platform.settings.data_dir / "storage" / "inputs", ignore_errors=True)
    await earlier.describe_all(platform, truth_in_use.versions)  # returns: nothing is left to do


async def test_earlier_truth_of_a_public_repository_is_marked(
    hub: HubServer, migrated_database_url: str, tmp_path: Path
) -> None:
    """By asking the hub without a token; its events are the public ones, if no inputs are stored."""
    directory = write(tmp_path / "events", tables_of(range(6), hits=40))
    api, repo = hub.api("ada"), f"ada/earlier-{uuid.uuid4().hex[:8]}"
    api.create_repo(repo, repo_type="dataset")
    api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=str(directory))
    chosen = {"database_url": migrated_database_url, "data_dir": tmp_path / "data", "hub_url": hub.url}
    async with models.opened(chosen) as platform:
        await truth_in_use.import_truth(platform, "tracking", repo, config=CONFIG, events=SCORED)
        imported = (await TruthVersion.get()).manifest
        assert imported["is_published"] is True
        evaluation = imported["data"]["evaluation"]
        assert (evaluation["repository"], evaluation["revision"]) == (repo, imported["revision"])
        other = {"data": {"evaluation": evaluation | {"revision": "0" * 40}}}
        for before, published in (
            ({}, True),
            ({"inputs": {}}, True),  # the events are read from the hub
            (other, False),  # it was imported from elsewhere
            ({"private": True}, False),
        ):
            if "private" in before:
                api.update_repo_settings(repo, private=True, repo_type="dataset")
            await change(**imported | {"sketches": None, "is_published": False} | before)
            await earlier.describe_all(platform, truth_in_use.versions)
            found = (await TruthVersion.get()).manifest
            assert (found["is_published"], found[SKETCHES]) == (published, imported[SKETCHES]), before


# -- earlier truth, when something fails --------------------------------------------------------------------

SOON = Backoff(first=timedelta(milliseconds=1), longest=timedelta(milliseconds=50))


async def is_described() -> bool:
    """Whether all truth that counts has sketches."""
    return all(SKETCHES in truth.manifest for truth in await registry.rows_of(await truth_in_use.versions()))


async def test_damaged_truth_does_not_hold_up_others(
    platform: Platform, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again, whatever its error is."""
    manifest = (await TruthVersion.get()).manifest
    await change(sketches=None, tables=None)
    damaged = await TruthVersion.get()
    whole = {name: value for name, value in manifest.items() if name != SKETCHES}
    await TruthVersion.create(task="tracking", version="f" * 16, manifest=whole)
    await Challenge.create(name="second", task="tracking", title="Second", truth_version="f" * 16)
    async with in_background(earlier.describe_all(platform, truth_in_use.versions, SOON)):
        await until(lambda: caplog.text.count(f"truth {damaged.version} ") >= 2)
        assert (await TruthVersion.get(version="f" * 16)).manifest[SKETCHES]
        assert "KeyError: 'tables'" in caplog.text
        damaged.manifest = whole
        await damaged.save(update_fields=["manifest"])
        await eventually_async(is_described)


async def test_earlier_truth_is_described_after_an_outage(
    platform: Platform, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the database, here: its failure is logged."""
    await change(sketches=None)
    await database.connection().execute_script("ALTER TABLE truth_versions RENAME TO away")
    try:
        async with in_background(earlier.describe_all(platform, truth_in_use.versions, SOON)):
            await until(lambda: caplog.text.count("earlier truth could not be read") >= 2)
            await database.connection().execute_script("ALTER TABLE away RENAME TO truth_versions")
            await eventually_async(is_described)
    finally:
        with suppress(OperationalError):
            await database.connection().execute_script("ALTER TABLE away RENAME TO truth_versions")


async def test_earlier_truth_waits_for_another_process(platform: Platform) -> None:
    """Not in a thread, which would keep a stopping server."""
    await change(sketches=None)
    directory = platform.settings.data_dir / "sketches"

    async def stopped() -> None:
        async with in_background(earlier.describe_all(platform, truth_in_use.versions, SOON)):
            await asyncio.sleep(0)  # it looks at the lock

    with locked(directory):
        await asyncio.wait_for(in_thread(lambda: asyncio.run(stopped()), "test"), 10)
        task = asyncio.create_task(earlier.describe_all(platform, truth_in_use.versions, SOON))
        await asyncio.sleep(0)
    await task
    assert await is_described()


async def test_sketches_are_made_in_threads_that_end_with_it(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopping server waits for threads of asyncio's executor."""
    made_in, write = [], sketches.write

    def noted(*args: Any) -> None:
        made_in.append(threading.current_thread().daemon)
        write(*args)

    monkeypatch.setattr(sketches, "write", noted)
    await change(sketches=None)
    await earlier.describe_all(platform, truth_in_use.versions)
    assert made_in == [True]


# -- this machine's copies -----------------------------------------------------------------------------------


async def stored(storage: LocalStorage, directory: Path, event: int) -> Stored:
    """Store the sketches of one event."""
    path = directory / f"{event}.sketches"
    sketches.write(path, Dataset(EVENTS_DIRECTORY), ["tracker_hits"], EventRange(event, event + 1), "secret")
    sha256 = sha256_of(path)
    await storage.put_final(f"truth/{sha256}.sketches", path)
    return {"sha256": sha256, "bytes": path.stat().st_size, "tables": ["tracker_hits"]}


@pytest.fixture
async def copies(tmp_path: Path) -> AsyncIterator[Copies]:
    """Sketches of two events, and where copies of them are kept."""
    storage, directory = LocalStorage(tmp_path / "storage"), tmp_path / "copies"
    directory.mkdir()
    yield Copies(storage, directory, [await stored(storage, tmp_path, event) for event in (3, 4)])
    await storage.close()


@dataclass(frozen=True)
class Copies:
    storage: LocalStorage
    directory: Path
    files: list[Stored]

    def of_process(self) -> SketchCache:
        """The copies as a process sees them."""
        return SketchCache(self.storage, self.directory)

    def names(self) -> set[str]:
        return {path.stem for path in self.directory.iterdir()}


async def test_unwanted_sketches_may_be_deleted_at_once(copies: Copies) -> None:
    cache = copies.of_process()
    for file in copies.files:
        await cache.opened(file)
    await asyncio.gather(cache.keep([]), cache.keep([]))
    assert not copies.names()


async def test_sketches_may_be_deleted_by_another_process(copies: Copies) -> None:
    for _ in range(20):
        file, one, other = copies.files[0], copies.of_process(), copies.of_process()
        await other.opened(file)
        opened, _ = await asyncio.gather(one.opened(file), other.keep([]))
        assert opened.has(hashes_of(3))


async def test_unwanted_sketches_of_earlier_processes_are_deleted(copies: Copies) -> None:
    """On the first request, and when other truth is current."""
    first, second = copies.files
    earlier, cache = copies.of_process(), copies.of_process()
    await earlier.opened(first)
    await earlier.opened(second)
    await cache.keep([second])
    assert copies.names() == {second["sha256"]}
    await earlier.keep([first, second])
    await copies.of_process().opened(first)
    await cache.keep([first])
    assert copies.names() == {first["sha256"]}


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], lambda data: data[::-1]])
async def test_damaged_copies_of_sketches_are_fetched_again(
    copies: Copies, damage: Callable[[bytes], bytes]
) -> None:
    """As after a power cut."""
    file = copies.files[0]
    await copies.of_process().opened(file)
    (path,) = copies.directory.iterdir()
    right = path.read_bytes()
    path.unlink()  # it may be the storage's own file
    path.write_bytes(damage(right))
    opened = await copies.of_process().opened(file)
    assert opened.has(hashes_of(3))
    assert not opened.has(hashes_of(4))
    assert path.read_bytes() == right
