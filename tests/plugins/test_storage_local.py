"""Files on the local disk: the storage's contract, and atomic writes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from collidium import settings
from collidium.contracts.storage import MissingFile
from collidium_plugins.storage_local import LocalStorage, collidium_storages


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_the_plugin_keeps_files_below_the_data_directory(tmp_path: Path) -> None:
    (storage,) = collidium_storages(settings.load(data_dir=tmp_path))
    assert isinstance(storage, LocalStorage)
    assert (storage.name, storage.directory) == ("local", tmp_path / "storage")


async def test_writing_to_the_original_later_changes_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    original = tmp_path / "original"
    original.write_bytes(b"scored")
    await storage.put("predictions/a.parquet", original)
    original.write_bytes(b"forged")
    await storage.get("predictions/a.parquet", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"scored"


@pytest.mark.parametrize("key", ["../a", "/etc/passwd", "a//b", "INCOMING/a", ".hidden", "a/..", "", "a\0"])
async def test_a_key_leads_nowhere_else(tmp_path: Path, key: str) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(ValueError, match="storage key"):
        await LocalStorage(tmp_path / "storage").put(key, tmp_path / "file")


async def test_a_put_that_fails_leaves_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    with pytest.raises(FileNotFoundError):
        await storage.put("a", tmp_path / "absent")
    assert files(tmp_path / "storage") == []
    assert not await storage.exists("a")


async def test_a_missing_file_differs_from_a_missing_place(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    with pytest.raises(MissingFile):
        await storage.get("a", tmp_path / "copy")
    (tmp_path / "file").write_bytes(b"x")
    await storage.put("a", tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        await storage.get("a", tmp_path / "absent" / "copy")


async def test_putting_one_key_at_once_leaves_one_whole_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    contents = [bytes([number]) * 1_000_000 for number in range(8)]
    for number, content in enumerate(contents):
        (tmp_path / f"file{number}").write_bytes(content)
    await asyncio.gather(*(storage.put("a", tmp_path / f"file{number}") for number in range(8)))
    assert files(tmp_path / "storage") == ["a"]
    assert (tmp_path / "storage" / "a").read_bytes() in contents
