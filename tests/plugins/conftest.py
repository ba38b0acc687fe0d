"""The servers of :mod:`tests.hub` and :mod:`tests.s3`, and repositories of the hub."""

import pytest
from tests.hub import HubServer, hub, own_hub
from tests.s3 import own_s3, s3_server

from .public_client import programs

__all__ = ["HubServer", "hub", "own_hub", "own_s3", "programs", "s3_server"]


@pytest.fixture
def repo(hub: HubServer, request: pytest.FixtureRequest) -> str:
    """A new empty model repository of ada."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:60].strip("-")
    while "--" in name:
        name = name.replace("--", "-")
    return hub.api("ada").create_repo(f"ada/{name}").repo_id
