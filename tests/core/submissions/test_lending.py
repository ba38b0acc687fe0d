"""Predictions in the storage while other machines score them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collidium.contracts.storage import StorageUnavailable
from collidium.submissions import scores
from collidium_plugins.storage_local import LocalStorage


class Failing(LocalStorage):
    """Storage that deletes nothing while it is ``away``."""

    away = True

    async def delete(self, key: str) -> None:
        if self.away:
            raise StorageUnavailable("not now")
        await super().delete(key)


async def test_what_cannot_be_deleted_after_scoring_is_deleted_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Failing(tmp_path / "storage")
    platform: Any = SimpleNamespace(storage=storage, executor=SimpleNamespace(is_remote=True))
    truth: Any = SimpleNamespace(paths={})
    file = tmp_path / "predictions.parquet"
    file.write_bytes(b"PAR1")
    for away in (True, False):
        storage.away = away
        async with scores._uploaded(platform, truth, file, "") as files:
            assert files is not None
            assert await storage.exists(files[file].key)
        assert [path.is_file() for path in storage.directory.rglob("*.parquet")] == [True] * away
    assert "from the storage yet: not now" in caplog.text
