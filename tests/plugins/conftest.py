"""The hub of :mod:`tests.hub`, and repositories on it."""

from pathlib import Path

import pytest
from tests.hub import HubServer, hub, own_hub

from .public_client import programs

__all__ = ["HubServer", "hub", "own_hub", "programs"]

#: What the hub's own client does that Python or its own authors would rather not see.
CLIENT_WARNINGS = (
    "ignore:Use 'content=:DeprecationWarning",
    "ignore:It seems that you are about to commit a data file:UserWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for warning in CLIENT_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture
def repo(hub: HubServer, request: pytest.FixtureRequest) -> str:
    """A new empty model repository of ada."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:60].strip("-")
    while "--" in name:
        name = name.replace("--", "-")
    return hub.api("ada").create_repo(f"ada/{name}").repo_id
