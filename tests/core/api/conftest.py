"""A running platform with the demo's truth, and what callers need to talk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from threading import Event
from time import monotonic

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.tables import flatten
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

EVENTS = Path(str(files("collidium") / "demo" / "data" / "odd-ttbar-pu0"))
#: The demo's eval events.
FIRST, STOP = 3, 5


@pytest.fixture
def platform(start_server: StartServer) -> ServerProcess:
    """A server whose tracking task is scored against real events 3 and 4."""
    server = start_server()
    import_truth(server)
    return server


def import_truth(server: ServerProcess) -> None:
    done = server.run(
        "truth",
        "import",
        "tracking",
        "--from",
        str(EVENTS),
        "--config",
        "ttbar_pu0",
        "--events",
        f"{FIRST}:{STOP}",
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def caller(platform: ServerProcess) -> Iterator[Callable[[str], httpx.Client]]:
    """Makes a client that is signed in as somebody new."""
    clients: list[httpx.Client] = []

    def sign_in(name: str) -> httpx.Client:
        token = platform.add_user(name)
        clients.append(
            httpx.Client(
                base_url=platform.base_url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=60,
                trust_env=False,
            )
        )
        return clients[-1]

    yield sign_in
    for client in clients:
        client.close()


@pytest.fixture
def alice(caller: Callable[[str], httpx.Client]) -> httpx.Client:
    return caller("alice")


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


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Return once ``condition()`` holds; fails after ``seconds``."""
    deadline = monotonic() + seconds
    pause = Event()
    while not condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        pause.wait(0.01)
