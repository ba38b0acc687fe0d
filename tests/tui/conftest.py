"""A server for each module of tests of the console."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collidium.client import Client
from collidium.testing.server import ServerProcess

ADMIN_TOKEN = "console-tests-admin-token"


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on embedded defaults, with an operators' secret."""
    directory = tmp_path_factory.mktemp("backend")
    with ServerProcess(directory, env={"ADMIN_TOKEN": ADMIN_TOKEN}) as server:
        yield server


@pytest.fixture
def operator(backend: ServerProcess) -> Iterator[Client]:
    """The operators' client of the module's server."""
    with Client(backend.base_url, token="", admin_token=backend.admin_token) as client:
        yield client
