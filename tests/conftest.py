"""The suite stands on the fixtures that the platform ships for everybody's tests."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

import httpx._transports.default as httpx_transports
import pytest
from hypothesis import HealthCheck, settings
from tests.counts import LONG

pytest_plugins = ["collidium.testing.plugin"]

settings.register_profile(
    "collidium",
    max_examples=100 if LONG else 30,
    # How long an example takes says how busy the machine is.
    deadline=None,
    # Databases and servers are shared by the examples on purpose.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("collidium")


def _prepare_hub_client() -> None:
    """Set what huggingface_hub reads at its import: the local hub takes files by LFS alone."""
    for name in ("XET", "PROGRESS_BARS", "TELEMETRY"):
        os.environ[f"HF_HUB_DISABLE_{name}"] = "1"


_prepare_hub_client()


_make_context = httpx_transports.create_ssl_context
#: To read the public certificates takes longer than most calls of tests, and none of those needs them.
_public_certificates = cache(lambda: _make_context(trust_env=False))


def _context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    if verify is True and cert is None and not trust_env:
        return _public_certificates()
    return _make_context(verify, cert, trust_env)


httpx_transports.create_ssl_context = _context


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "long: left out unless COLLIDIUM_TEST_LONG=1; a cheaper test guards its promise"
    )


def pytest_sessionstart() -> None:
    _prepare_hub_client()  # the environment was replaced since, and not all have imported it yet


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not LONG:
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
