"""The suite stands on the fixtures that the platform ships for everybody's tests."""

import pytest
from hypothesis import settings
from tests.counts import LONG

pytest_plugins = ["collidium.testing.plugin"]

# How long an example takes says how busy the machine is.
settings.register_profile("collidium", deadline=None)
settings.load_profile("collidium")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "long: left out unless COLLIDIUM_TEST_LONG=1; a cheaper test guards its promise"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not LONG:
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
