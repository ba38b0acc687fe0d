"""A running platform with the demo's truth, and what callers need to talk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.resources import files
from itertools import count
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub import token_on

from collidium.contracts.tables import flatten
from collidium.testing.databases import Databases
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

EVENTS = Path(str(files("collidium") / "demo" / "data" / "odd-ttbar-pu0"))
#: The demo's eval events.
FIRST, STOP = 3, 5


@pytest.fixture(scope="module")
def platform(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose tracking task is scored against real events 3 and 4; the module's tests share it."""
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("server"), url) as server:
        import_truth(server)
        yield server


@pytest.fixture
def fresh_platform(start_server: StartServer) -> ServerProcess:
    """The same for one test alone: nobody has signed in yet."""
    server = start_server()
    import_truth(server)
    return server


def import_truth(server: ServerProcess) -> None:
    done = server.run(
        *("truth", "import", "tracking", "--from", str(EVENTS)),
        *("--config", "ttbar_pu0", "--events", f"{FIRST}:{STOP}"),
    )
    assert done.returncode == 0, done.stderr


def signed_in(server: ServerProcess, name: str) -> httpx.Client:
    """A client that calls as a new account of that name."""
    token = token_on(server.data_dir / "hub", name)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=server.base_url, headers=headers, timeout=60, trust_env=False)


_serial = count()


def name_of(client: httpx.Client) -> str:
    """The account that a client calls as."""
    return str(client.get("/v1/me").json()["hub_username"])


@pytest.fixture
def alice(platform: ServerProcess) -> Iterator[httpx.Client]:
    """A client that calls as an account of its own."""
    with signed_in(platform, f"alice{next(_serial)}") as client:
        yield client


@pytest.fixture
def caller(fresh_platform: ServerProcess) -> Iterator[Callable[[str], httpx.Client]]:
    """Makes clients of the fresh platform, each signed in as somebody new."""
    with ExitStack() as clients:
        yield lambda name: clients.enter_context(signed_in(fresh_platform, name))


@pytest.fixture
def operator(platform: ServerProcess) -> Iterator[httpx.Client]:
    """A client with the operators' secret."""
    headers = {"X-Admin-Token": platform.admin_token}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def hits() -> pa.Table:
    """The eval hits with their truth, a row each."""
    table = pq.read_table(EVENTS / "tracker_hits.parquet")
    flat = flatten(table, ["hit_id", "particle_id"])
    event = flat.column("event_id").to_numpy()
    return flat.filter(pa.array((event >= FIRST) & (event < STOP)))


@pytest.fixture(scope="session")
def oracle(hits: pa.Table) -> pa.Table:
    """Perfect predictions: each particle a track."""
    return pa.table(
        {
            "event_id": hits["event_id"],
            "hit_id": hits["hit_id"],
            "track_id": hits["particle_id"].cast(pa.int64()),
        }
    )


def parquet(table: pa.Table, **options: object) -> bytes:
    """The table as the bytes of a parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def files_below(directory: Path) -> list[Path]:
    """All files, at any depth."""
    return [path for path in directory.rglob("*") if path.is_file()] if directory.exists() else []
