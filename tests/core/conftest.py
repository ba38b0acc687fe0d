"""A connected database for tests of the domains."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from collidium import database


@pytest.fixture
async def connected(migrated_database_url: str) -> AsyncIterator[str]:
    """This process is connected to a database with the platform's schema; its URL."""
    async with database.connected(migrated_database_url):
        yield migrated_database_url
