"""A person with unfinished requests is not erased."""

from __future__ import annotations

import pytest

from collidium import accounts, erasing, operations
from collidium.errors import Conflict

from .conftest import OpenPlatform, order, sign_up


async def test_unfinished_requests_keep_a_person(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        placed = await order(platform, await sign_up("zara"))
        found = await erasing.preview("ZARA")
        assert found is not None
        with pytest.raises(Conflict, match=placed):
            await erasing.close(found, actor="command")
        assert not (await accounts.find("zara")).banned
        assert await operations.audit_log(limit=1) == []


async def test_a_ban_outlasts_the_name(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        await sign_up("zara")
        await accounts.set_banned("zara", True)
        found = await erasing.preview("zara")
        assert found is not None
        for _ in range(2):  # as if the first run had been killed
            await erasing.close(found, actor="command")
        await erasing.finish(found, platform.storage)
        assert (await accounts.find(found.becomes)).banned
        assert await erasing.preview("zara") is await erasing.preview(found.becomes) is None
