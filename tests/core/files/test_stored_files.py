"""What the storage returns is compared with the hash of what was stored, before anything uses it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.files.stored import fetch
from collidium_plugins.storage_local import LocalStorage

CONTENT = b"what was stored" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
async def storage(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(tmp_path / "storage")
    (tmp_path / "sent").write_bytes(CONTENT)
    await storage.put("some/file", tmp_path / "sent")
    return storage


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize(
    "content", [CONTENT[:-1], CONTENT + b"!", b"", CONTENT[:99] + b"X" + CONTENT[100:]], ids=len
)
async def test_another_content_is_a_failure_of_the_storage(
    storage: LocalStorage, tmp_path: Path, content: bytes, final: bool
) -> None:
    (storage.directory / "some/file").write_bytes(content)
    failures = REGISTRY.get_sample_value("collidium_storage_failures_total", {"operation": "compare"}) or 0
    with pytest.raises(StorageUnavailable, match="another file for some/file"):
        await fetch(storage, "some/file", tmp_path / "copy", SHA256, final=final)
    assert not (tmp_path / "copy").exists()
    assert (storage.directory / "some/file").read_bytes() == content, "it is kept for its operator"
    failed = REGISTRY.get_sample_value("collidium_storage_failures_total", {"operation": "compare"})
    assert failed == failures + 1


@pytest.mark.parametrize("final", [False, True])
async def test_what_was_stored_is_fetched(storage: LocalStorage, tmp_path: Path, final: bool) -> None:
    for number, known in enumerate((SHA256, None)):
        path = tmp_path / str(number)
        assert await fetch(storage, "some/file", path, known, final=final) == SHA256
        assert path.read_bytes() == CONTENT
    with pytest.raises(MissingFile):
        await fetch(storage, "no/file", tmp_path / "copy", SHA256, final=final)


@pytest.mark.parametrize("final", [False, True])
async def test_a_file_that_cannot_be_read_is_no_error_of_its_user(
    storage: LocalStorage, tmp_path: Path, final: bool
) -> None:
    (storage.directory / "some/file").unlink()
    (storage.directory / "some/file").mkdir()
    with pytest.raises(StorageUnavailable, match="some/file cannot be read: Is a directory"):
        await fetch(storage, "some/file", tmp_path / "copy", SHA256, final=final)
