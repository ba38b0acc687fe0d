"""The cache of truth: fetches once per machine, verifies, and evicts only stored versions."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from toy_task import Make

from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.files.held import locked
from collidium.scoring.truth.cache import TruthCache, table_key
from collidium.scoring.truth.importing import Origin
from collidium.scoring.truth.versions import Truth
from collidium_plugins.storage_local import LocalStorage

PLENTY = 1024**3


class Remote(LocalStorage):
    """Storage that shares no files with the machines that use it, and counts what these fetch."""

    put_final, get_final = Storage.put_final, Storage.get_final

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.fetched: list[str] = []

    async def get(self, key: str, path: Path) -> None:
        self.fetched.append(key)
        await super().get(key, path)


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path / "remote")


@pytest.fixture
def stored(make: Make) -> Make:
    """Prepares truth in a cache and stores it, as an import does."""

    async def stored(cache: TruthCache, revision: str = "1") -> Truth:
        truth = await make(cache.directory, origin=Origin("toy", revision), floors=False)
        await cache.store(truth)
        return truth

    return stored


async def test_another_machine_has_the_same_truth(stored: Make, remote: Remote, tmp_path: Path) -> None:
    truth = await stored(TruthCache(remote, tmp_path / "one", PLENTY))
    remote.fetched.clear()  # what was compared when it was stored
    other = TruthCache(remote, tmp_path / "other", PLENTY)
    for _ in range(2):
        async with other.opened("toy", truth.version) as found:
            assert found.directory == tmp_path / "other" / "toy" / truth.version
            assert found.as_dict() == truth.as_dict()
            found.verify()
    assert len(remote.fetched) == 1 + len(truth.tables)
    assert [path.name for path in (tmp_path / "other" / "toy").iterdir()] == [truth.version]


async def test_processes_that_open_at_once_fetch_once(stored: Make, remote: Remote, tmp_path: Path) -> None:
    truth = await stored(TruthCache(remote, tmp_path / "one", PLENTY))
    remote.fetched.clear()
    # Of each process of a machine one; what they share is the directory.
    caches = [TruthCache(remote, tmp_path / "other", PLENTY) for _ in range(3)]

    async def open_it(cache: TruthCache) -> None:
        async with cache.opened("toy", truth.version):
            pass

    await asyncio.gather(*(open_it(cache) for cache in caches * 4))
    assert len(remote.fetched) == 1 + len(truth.tables)


async def test_the_storage_of_this_machine_shares_its_files(stored: Make, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    truth = await stored(TruthCache(storage, tmp_path / "one", PLENTY))
    async with TruthCache(storage, tmp_path / "other", PLENTY).opened("toy", truth.version) as found:
        for name, path in found.paths.items():
            assert path.samefile(truth.paths[name])
            assert path.samefile(storage.directory / table_key(truth.tables[name]))


async def test_what_arrives_changed_is_not_used(stored: Make, remote: Remote, tmp_path: Path) -> None:
    truth = await stored(TruthCache(remote, tmp_path / "one", PLENTY))
    table = remote.directory / table_key(truth.tables["answers"])
    right = table.read_bytes()
    table.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    other = TruthCache(remote, tmp_path / "other", PLENTY)
    with pytest.raises(StorageUnavailable, match="another file"):
        async with other.opened("toy", truth.version):
            pytest.fail("it was opened")
    assert list((tmp_path / "other" / "toy").iterdir()) == []
    table.write_bytes(right)
    async with other.opened("toy", truth.version) as found:
        found.verify()


async def test_truth_that_is_nowhere_is_named(remote: Remote, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"truth abc of toy .* import it again"):
        async with TruthCache(remote, tmp_path, PLENTY).opened("toy", "abc"):
            pytest.fail("it was opened")


async def test_room_is_made_of_what_is_stored_and_unused(
    stored: Make, remote: Remote, tmp_path: Path
) -> None:
    machine = TruthCache(remote, tmp_path / "one", PLENTY)
    versions = [(await stored(machine, str(number))).version for number in range(5)]
    size = sum(table.bytes for table in Truth.open(machine.directory / "toy" / versions[0]).tables.values())
    small = TruthCache(remote, tmp_path / "small", 3 * size + size // 2)

    def here() -> list[int]:
        names = [path.name for path in (small.directory / "toy").iterdir()]
        return sorted(versions.index(name) for name in names)

    async def use(number: int) -> None:
        async with small.opened("toy", versions[number]):
            pass

    async with small.opened("toy", versions[0]):
        for number in (1, 2, 1, 3):
            await use(number)
        assert here() == [0, 1, 3], "the version in use stays, and those used last"
    await remote.delete(f"truth/toy/{versions[3]}.json")
    for number, left in ((2, [1, 2, 3]), (4, [2, 3, 4]), (0, [0, 3, 4])):
        await use(number)
        assert here() == left, "what is nowhere else stays"


async def test_waiting_for_another_process_takes_no_thread(
    stored: Make, remote: Remote, tmp_path: Path
) -> None:
    """Another process fetches, however long; as many versions are wanted here as the pool has threads."""
    truth = await stored(TruthCache(remote, tmp_path / "one", PLENTY))
    other = TruthCache(remote, tmp_path / "other", PLENTY)
    other.directory.mkdir()

    async def open_it(version: str) -> None:
        async with other.opened("toy", version):
            pass

    with ThreadPoolExecutor(2) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        with locked(other.directory):
            found = [asyncio.create_task(open_it(version)) for version in ("a", "b", truth.version)]
            while len(list((other.directory / "toy").glob("held-*.part"))) < len(found):
                await asyncio.to_thread(int)
            async with asyncio.timeout(10):
                for _ in range(20):
                    await asyncio.to_thread(int)
        *absent, fetched = await asyncio.gather(*found, return_exceptions=True)
    assert [type(error) for error in absent] == [ConfigurationError] * 2
    assert fetched is None
