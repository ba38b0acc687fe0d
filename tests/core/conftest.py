"""A connected database for tests of the domains, and a podman for local simulations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.core.pipelines import stages
from tests.needs import Needs
from tests.podman import Podman

from collidium import database


@pytest.fixture
async def connected(migrated_database_url: str) -> AsyncIterator[str]:
    """This process is connected to a database with the platform's schema; its URL."""
    async with database.connected(migrated_database_url):
        yield migrated_database_url


@pytest.fixture(scope="session")
def podman(needs: Needs) -> Iterator[Podman]:
    """A podman with the image of the stages."""
    needs("podman")
    with Podman() as podman:
        files = {f"tables/{name}": content for name, content in stages.tables(range(4)).items()}
        # Files shall not belong to the user that the image's author chose.
        podman.make_image("stages", {"bin/stage": stages.SCRIPT.encode(), **files}, "USER 1234")
        yield podman
