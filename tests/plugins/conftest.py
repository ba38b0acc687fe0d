"""The hub of :mod:`tests.hub`, and repositories on it."""

import pytest
from tests.hub import HubServer, hub, own_hub

from .public_client import programs

__all__ = ["HubServer", "hub", "own_hub", "programs"]


@pytest.fixture
def repo(hub: HubServer, request: pytest.FixtureRequest) -> str:
    """A new empty model repository of ada."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:60].strip("-")
    while "--" in name:
        name = name.replace("--", "-")
    return hub.api("ada").create_repo(f"ada/{name}").repo_id
