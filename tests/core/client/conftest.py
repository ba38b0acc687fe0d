"""A client of the account alice at the module's server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collidium.client import Client
from collidium.testing.server import ServerProcess


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    return server.add_user("alice")


@pytest.fixture
def client(server: ServerProcess, token: str) -> Iterator[Client]:
    with Client(server.base_url, token, server.admin_token) as alice:
        yield alice
