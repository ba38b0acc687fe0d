"""Files in a repository of a real hub: the storage's contract, and privacy."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.hub import HubServer

from collidium import settings
from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.hub.client import Hub
from collidium_plugins.storage_hub import HubStorage, collidium_storages


def storage_on(server: HubServer, repo: str, user: str = "ada") -> HubStorage:
    return HubStorage(Hub(server.url, server.token(user)), repo)


async def test_another_process_reads_what_one_has_kept(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"PAR1" * 1000)
    await storage_on(hub, "ada/shared").put("outputs/1/data/a.parquet", tmp_path / "file")
    other = storage_on(hub, "ada/shared")
    await other.get("outputs/1/data/a.parquet", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "file").read_bytes()
    assert not await other.exists("outputs/1/data"), "a folder is no file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "file"]


async def test_what_is_kept_is_private(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a submission")
    await storage_on(hub, "ada/private").put("predictions/a", tmp_path / "file")
    assert hub.api("ada").dataset_info("ada/private").private
    hub.api("ada").create_repo("ada/public", repo_type="dataset")
    with pytest.raises(StorageUnavailable, match="public"):
        await storage_on(hub, "ada/public").put("predictions/a", tmp_path / "file")


async def test_a_repository_of_others_is_reported(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a submission")
    with pytest.raises(StorageUnavailable, match="does not permit this"):
        await storage_on(hub, "ada/hers", "bob").put("predictions/a", tmp_path / "file")


async def test_a_hub_that_went_down_is_reported_by_every_call(own_hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a submission")
    storage = storage_on(own_hub, "ada/storage")
    await storage.put("a", tmp_path / "file")
    own_hub.end(signal.SIGKILL)
    for call in (storage.exists("a"), storage.delete("a"), storage.get("a", tmp_path / "copy")):
        with pytest.raises(StorageUnavailable, match="cannot be reached"):
            await call
    own_hub.start()
    await storage.get("a", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"a submission"


async def test_a_file_that_is_not_there_cannot_be_kept(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await storage_on(hub, "ada/storage").put("a", tmp_path / "absent")


def test_the_plugin_is_loaded_if_configured(tmp_path: Path) -> None:
    assert collidium_storages(settings.load(data_dir=tmp_path)) == []
    token = "kept"
    (storage,) = collidium_storages(
        settings.load(
            storage="hub", storage_hub_repo="lab/files", storage_hub_token=token, hub_url="http://hub"
        )
    )
    assert isinstance(storage, HubStorage)
    assert (storage.repo, storage.hub.endpoint) == ("lab/files", "http://hub")
    assert token not in repr(storage.hub)


def test_a_setting_that_is_missing_is_reported() -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_STORAGE_HUB_TOKEN"):
        settings.load(storage="hub", storage_hub_repo="lab/files")
    with pytest.raises(ConfigurationError, match="PLATFORM_STORAGE_HUB_REPO"):
        settings.load(storage_hub_repo="no namespace")
