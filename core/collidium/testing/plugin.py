"""The pytest plugin with the fixtures: ``pytest_plugins = ["collidium.testing.plugin"]``.

================================  =========================================================================
``database_kind``                 ``sqlite`` or ``postgresql``; a test that uses it or one of the next four
                                  fixtures runs once on each (``--database`` chooses)
``database_url``                  address of an empty database
``migrated_database_url``         address of a database with the platform's schema
``server``                        a :class:`~collidium.testing.server.ServerProcess` on such a database
``start_server``                  starts a server with settings: ``start_server({…})``
``postgres_server``               the session's temporary PostgreSQL, started on demand
``isolated_environment``          environment of a process, without the caller's settings
================================  =========================================================================

Tests that use a database get the marker ``database``: ``-m database`` selects them. With the marker
``only_on(kind)`` a test runs on this kind of database alone.

During the run, ``os.environ`` lacks the caller's settings, tokens and caches.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from collidium.testing import processes
from collidium.testing.databases import Databases, PostgresDatabases, SqliteDatabases, required_settings
from collidium.testing.postgres import PostgresServer
from collidium.testing.server import ServerProcess

KINDS = ("sqlite", "postgresql")

StartServer = Callable[..., ServerProcess]

_environment_before = pytest.StashKey[Mapping[str, str]]()
_home = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("collidium").addoption(
        "--database",
        choices=(*KINDS, "all"),
        default="all",
        help="database of the tests (default: all); PostgreSQL is started for the run",
    )


def pytest_configure(config: pytest.Config) -> None:
    # If pytest runs in the background, processes of tests would inherit an ignored SIGINT.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Early, because huggingface_hub reads its variables when it is imported.
    home = Path(tempfile.mkdtemp(prefix="collidium-home-"))
    config.stash[_home] = home
    config.stash[_environment_before] = dict(os.environ)
    config.addinivalue_line("markers", "only_on(kind): runs on this kind of database alone")
    config.addinivalue_line("markers", "database: set on every test that uses a database; not by hand")
    isolated = processes.isolated_environment(home)
    # pytest and the interpreter keep the caller's home; only caches move.
    isolated["HOME"] = os.environ.get("HOME", str(home))
    _replace_environment(isolated)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _environment_before in config.stash:
        _replace_environment(config.stash[_environment_before])
        shutil.rmtree(config.stash[_home], ignore_errors=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database_kind" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--database")
        kinds = KINDS if chosen == "all" else (chosen,)
        metafunc.parametrize("database_kind", kinds, indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    elsewhere = [item for item in items if _belongs_on_another_database(item)]
    items[:] = [item for item in items if item not in elsewhere]
    config.hook.pytest_deselected(items=elsewhere)
    for item in items:
        if "database_kind" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


def _belongs_on_another_database(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("only_on")
    if marker is None or not isinstance(item, pytest.Function):
        return False
    return item.callspec.params["database_kind"] not in marker.args


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.getoption('--database')}"


@pytest.fixture(scope="session")
def database_kind(request: pytest.FixtureRequest) -> str:
    """``sqlite`` or ``postgresql``."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A temporary PostgreSQL. Raises NoPostgres without its programs."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def _databases(
    database_kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Databases:
    if database_kind == "sqlite":
        return SqliteDatabases(tmp_path_factory.mktemp("databases"))
    return PostgresDatabases(request.getfixturevalue("postgres_server"))


@pytest.fixture
def database_url(_databases: Databases) -> Iterator[str]:
    """The address of an empty database."""
    with _databases.empty() as url, _set(required_settings(url)):
        yield url


@pytest.fixture
def migrated_database_url(_databases: Databases) -> Iterator[str]:
    """The address of a database with the platform's schema."""
    with _databases.migrated() as url, _set(required_settings(url)):
        yield url


@pytest.fixture
def isolated_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a subprocess, with home, caches and data directory below ``tmp_path``."""
    return processes.isolated_environment(tmp_path, {"PLATFORM_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def start_server(migrated_database_url: str, tmp_path: Path) -> Iterator[StartServer]:
    """A function that starts servers, which share a database and a data directory and end after the test."""
    with ExitStack() as servers:

        def start(env: Mapping[str, str] | None = None) -> ServerProcess:
            server = ServerProcess(tmp_path / "server", migrated_database_url, env)
            return servers.enter_context(server)

        yield start


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    """A running server."""
    return start_server()


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the context."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def _replace_environment(variables: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(variables):
        del os.environ[name]
    os.environ.update(variables)
