"""The suite stands on the fixtures that the platform ships for everybody's tests."""

from __future__ import annotations

import json
import os
import ssl
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx._transports.default as httpx_transports
import pytest
from hypothesis import HealthCheck, settings
from tests import needs as machine
from tests.counts import LONG
from tests.needs import Needs

from collidium.testing.postgres import NoPostgres, find_programs

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
    config.addinivalue_line(
        "markers",
        "one_database: its statements run on PostgreSQL in another test; `tox -e py` runs it on SQLite alone",
    )
    config.addinivalue_line(
        "markers",
        "packages(*names): deselected where one is not installed: of another environment",
    )
    # Last, so that what is installed comes first: pip brings PostgreSQL's programs, `pg_dump` included.
    with suppress(NoPostgres):
        os.environ["PATH"] += f"{os.pathsep}{find_programs()}"


def pytest_sessionstart() -> None:
    _prepare_hub_client()  # the environment was replaced since, and not all have imported it yet


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not _runs_here(item)]
    items[:] = [item for item in items if _runs_here(item)]
    config.hook.pytest_deselected(items=left_out)


def _runs_here(item: pytest.Item) -> bool:
    if item.get_closest_marker("long") and not LONG:
        return False
    return all(find_spec(name) for marker in item.iter_markers("packages") for name in marker.args)


@pytest.fixture(scope="session")
def needs() -> Needs:
    """``needs("podman")`` leaves a test out where that entry of ``tests/needs.py`` is missing."""
    return machine.require


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    ran = sum(len(terminalreporter.getreports(kind)) for kind in ("passed", "failed", "error"))
    names = machine.left_out(skipped)
    if report := os.environ.get(machine.REPORT):  # the parts of the suite are summed up by `tests/lanes.py`
        with Path(report).open("a") as lines:
            lines.write(json.dumps([ran + len(names), names]) + "\n")
    else:
        terminalreporter.write_line(machine.summary(ran + len(names), names)[0])
