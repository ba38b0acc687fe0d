"""Truth, inputs and models come from the storage as they were stored, by the hashes in the database."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from tests.core.servers import write_oracle

from collidium import plugins, score
from collidium.challenges import truth_in_use
from collidium.contracts.storage import StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Unavailable
from collidium.files.durable import sha256_of
from collidium.model_runs import model_files, model_queue
from collidium.model_runs.models import Evaluation
from collidium.platform import Platform
from collidium.scoring.truth.cache import manifest_key, table_key
from collidium.server import doctor
from collidium.submissions import model_runner
from collidium.submissions.models import Submission
from collidium.truth import model_inputs, registry, sketches
from collidium.truth.models import TruthVersion
from collidium_plugins.storage_local import LocalStorage

from . import models

#: Files of the storage; their hashes are read in all tests that score.
pytestmark = pytest.mark.one_database


async def import_truth(platform: Platform, events: EventRange) -> str:
    made = await truth_in_use.import_truth(
        platform, "tracking", str(EVENTS_DIRECTORY), config="ttbar_pu0", events=events
    )
    return made.version


def stored(platform: Platform, key: str) -> Path:
    assert isinstance(platform.storage, LocalStorage)
    return platform.storage.directory / key


def forget_copies(platform: Platform) -> None:
    """As on another machine: no truth is in the cache."""
    shutil.rmtree(platform.settings.data_dir / "truth")


async def is_opened(platform: Platform, version: str) -> bool:
    try:
        async with registry.opened(platform, "tracking", version):
            return True
    except StorageUnavailable:
        return False


async def lacking(platform: Platform) -> str:
    loaded = plugins.load(platform.settings.plugins_blocked)
    check = await doctor.run_check("stored files", platform.settings, loaded, doctor._stored, "")
    return f"{check.status}: {check.found}"


async def test_a_version_confirms_no_guess_of_the_truth(platform: Platform, tmp_path: Path) -> None:
    """Users see it, and could compute a hash of hidden values for each guess of them."""
    write_oracle(guess := tmp_path / "guess.parquet")
    row = await TruthVersion.get()
    made = await asyncio.to_thread(
        score, "tracking", guess, truth_from=EVENTS_DIRECTORY, config="ttbar_pu0", events="3:5"
    )
    assert made.truth_version == row.manifest["content"] != row.version
    assert await import_truth(platform, EventRange(3, 5)) == row.version
    await row.delete()
    assert await import_truth(platform, EventRange(3, 5)) == row.version, "also if both were imported at once"
    row = await TruthVersion.get()
    row.version = made.truth_version
    del row.manifest["content"]
    await row.save()
    assert await import_truth(platform, EventRange(3, 5)) == made.truth_version, "from before"


async def test_another_manifest_is_not_used(platform: Platform) -> None:
    """Even one that agrees with its tables: the database knows the hash of each."""
    row = await TruthVersion.get()
    manifest = stored(platform, manifest_key("tracking", row.version))
    right = manifest.read_bytes()
    assert row.manifest_sha256 == sha256_of(manifest)
    other = await import_truth(platform, EventRange(0, 2))
    forget_copies(platform)
    wrong = {
        "of another version": stored(platform, manifest_key("tracking", other)).read_bytes(),
        "with other floors": json.dumps(json.loads(right) | {"floors": {}}).encode(),
        "half of it": right[: len(right) // 2],
    }
    for text, content in wrong.items():
        manifest.write_bytes(content)
        assert not await is_opened(platform, row.version), text
    manifest.write_bytes(right)
    assert await is_opened(platform, row.version)


async def test_truth_imported_again_mends_the_storage(platform: Platform) -> None:
    """Tables, inputs and sketches: what is damaged is stored again, and the copy that shares its file."""
    row = await TruthVersion.get()
    files = await truth_in_use.stored_files()
    for key, sha256 in files.items():
        path = stored(platform, key)
        assert sha256_of(path) == sha256
        path.chmod(0o600)
        with path.open("r+b") as file:  # in place: copies may be hard links
            file.seek(-9, 2)
            file.write(b"\xff" * 9)
        assert sha256_of(path) != sha256
    assert await import_truth(platform, EventRange(3, 5)) == row.version
    files = await truth_in_use.stored_files()
    assert {sha256_of(stored(platform, key)) == sha256 for key, sha256 in files.items()} == {True}
    assert await is_opened(platform, row.version)


async def test_truth_from_before_gets_its_hash_when_read(platform: Platform) -> None:
    """Its tables are compared in any case."""
    row = await TruthVersion.get()
    assert await lacking(platform) == "ok: every stored file has its hash in the database"
    await TruthVersion.all().update(manifest_sha256=None)
    assert (await lacking(platform)).startswith("warning: 1 manifests of truth have no hash")
    manifest = stored(platform, manifest_key("tracking", row.version))
    right = manifest.read_bytes()
    other = await import_truth(platform, EventRange(0, 2))
    manifest.write_bytes(stored(platform, manifest_key("tracking", other)).read_bytes())
    forget_copies(platform)
    assert not await is_opened(platform, row.version)
    assert (await TruthVersion.get(version=row.version)).manifest_sha256 is None
    manifest.write_bytes(right)
    assert await is_opened(platform, row.version)
    assert (await TruthVersion.get(version=row.version)).manifest_sha256 == sha256_of(manifest)
    assert (await lacking(platform)).startswith("ok")


async def test_a_copy_of_truth_is_used_while_storage_is_wrong(platform: Platform) -> None:
    """Truth from before that is on this machine is scored against, and gets its hash later."""
    row = await TruthVersion.get()
    await TruthVersion.all().update(manifest_sha256=None)
    stored(platform, manifest_key("tracking", row.version)).unlink()
    assert await is_opened(platform, row.version)
    assert (await TruthVersion.get()).manifest_sha256 is None


async def test_a_second_import_keeps_or_mends_the_manifest(platform: Platform) -> None:
    row = await TruthVersion.get()
    manifest = stored(platform, manifest_key("tracking", row.version))
    right = manifest.read_bytes()
    for _ in range(2):
        forget_copies(platform)
        assert await import_truth(platform, EventRange(3, 5)) == row.version
        forget_copies(platform)
        assert await is_opened(platform, row.version)
        manifest.write_bytes(right[:-9])


@pytest.mark.parametrize("fails", ["the read of the manifest", "what follows the manifest"])
async def test_an_import_that_fails_leaves_truth_readable(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    row = await TruthVersion.get()
    key = manifest_key("tracking", row.version)
    get = platform.storage.get

    async def failing(name: str, path: Path) -> None:
        if name == key:
            raise StorageUnavailable("away")
        await get(name, path)

    async def full(*_: object) -> None:
        raise StorageUnavailable("full")

    forget_copies(platform)
    manifest = stored(platform, key)
    right = manifest.read_bytes()
    with monkeypatch.context() as patch:
        if fails == "the read of the manifest":
            patch.setattr(platform.storage, "get", failing)
        else:
            manifest.unlink()
            patch.setattr(sketches, "store", full)
        with pytest.raises(Unavailable):
            await import_truth(platform, EventRange(3, 5))
    if fails == "what follows the manifest":
        assert not manifest.exists()
        manifest.write_bytes(right)
    forget_copies(platform)
    assert await is_opened(platform, row.version)


async def test_another_table_is_not_used(platform: Platform) -> None:
    async with registry.opened(platform, "tracking", (await TruthVersion.get()).version) as truth:
        keys = [table_key(table) for table in truth.tables.values()]
    forget_copies(platform)
    path = stored(platform, keys[0])
    right = path.read_bytes()
    path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    assert not await is_opened(platform, truth.version)
    path.write_bytes(right)
    assert await is_opened(platform, truth.version)


async def test_a_copy_that_was_written_to_is_not_used(platform: Platform) -> None:
    """The copy of the local storage is the stored file itself; one that is wrong is fetched again."""
    async with registry.opened(platform, "tracking", (await TruthVersion.get()).version) as truth:
        key = table_key(next(iter(truth.tables.values())))
    path = stored(platform, key)
    right = path.read_bytes()
    for wrong in (right[:-1] + bytes([right[-1] ^ 1]), right[: len(right) // 2]):
        path.write_bytes(wrong)
        assert not await is_opened(platform, truth.version)
        assert not await is_opened(platform, truth.version)
        path.write_bytes(right)
        assert await is_opened(platform, truth.version)
    forget_copies(platform)
    assert await is_opened(platform, truth.version)


async def test_a_model_runs_only_as_it_was_sent(platform: Platform) -> None:
    """Stored bytes that were exchanged or cut are not run, and cost no attempt."""
    ids = [await models.send(platform, models.layers(number)) for number in range(2)]
    rows = [await model_queue.find(evaluation_id) for evaluation_id in ids]
    first, second = (stored(platform, model_files.model_key(row.sha256)) for row in rows)
    right = first.read_bytes()
    for wrong in (second.read_bytes(), right[: len(right) // 2], b""):
        first.write_bytes(wrong)
        for _ in range(model_queue.ATTEMPTS + 1):
            await Evaluation.exclude(id=ids[0]).update(turn=9)
            row = await models.claimed()
            assert row.id == ids[0]
            await model_runner.evaluate(platform, row)
        assert (await model_queue.find(ids[0])).state == "checking"
    assert not await Submission.exists()
    first.write_bytes(right)
    await models.run_all(platform)
    assert [(await model_queue.find(one)).state for one in ids] == ["scored", "scored"]


async def test_inputs_of_models_are_compared(platform: Platform) -> None:
    row = await TruthVersion.get()
    (key, *_) = model_inputs.stored_keys(row.manifest["inputs"])
    path = stored(platform, key)
    right = path.read_bytes()
    path.write_bytes(right[:-4] + b"PAR2")
    with pytest.raises(StorageUnavailable, match="another file"):
        async with model_inputs.opened(platform, row.manifest["inputs"]):
            pytest.fail("they were opened")
    path.write_bytes(right)
    async with model_inputs.opened(platform, row.manifest["inputs"]) as dataset:
        assert dataset
