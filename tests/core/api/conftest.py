"""A running platform with the demo's truth, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.resources import files
from itertools import count
from pathlib import Path
from shutil import copytree
from threading import Event
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub import token_on

from collidium.contracts.tables import flatten
from collidium.testing.databases import Databases
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .timed_task import install_timed

EVENTS = Path(str(files("collidium") / "demo" / "data" / "odd-ttbar-pu0"))
#: The demo's eval events.
FIRST, STOP = 3, 5

SUBMIT = "/v1/benchmark/tracking/submit"

SignIn = Callable[[str], httpx.Client]
OpenPlatform = Callable[..., AbstractContextManager[ServerProcess]]


@pytest.fixture(scope="session")
def open_platform(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPlatform]:
    """Starts servers whose tracking task is scored against real events 3 and 4: ``open_platform(dir, env)``.

    The truth is imported once, and each gets a copy of the database and the files.
    """
    with prepared(_databases, tmp_path_factory.mktemp("prepared"), import_truth) as opened:
        yield opened


@pytest.fixture(scope="session")
def open_timed(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPlatform]:
    """The same with the task of :mod:`timed_task`, which is installed in ``dir / "site"``."""

    def prepare(server: ServerProcess) -> None:
        import_truth(server)
        import_truth(server, "timed")
        done = server.run("task", "add", "timed")
        assert done.returncode == 0, done.stderr

    def with_site(directory: Path) -> dict[str, str]:
        directory.mkdir(exist_ok=True)
        install_timed(directory / "site")
        return {"PYTHONPATH": str(directory / "site")}

    directory = tmp_path_factory.mktemp("timed")
    with prepared(_databases, directory, prepare, with_site(directory)) as opened:
        yield lambda directory, env=None: opened(directory, with_site(directory) | (env or {}))


@contextmanager
def prepared(
    databases: Databases,
    directory: Path,
    prepare: Callable[[ServerProcess], None],
    env: Mapping[str, str] | None = None,
) -> Iterator[OpenPlatform]:
    """Start servers on copies of the database and truth of one that was prepared."""
    with databases.migrated() as template:
        original = ServerProcess(directory, template, env)
        prepare(original)

        @contextmanager
        def opened(directory: Path, env: Mapping[str, str] | None = None) -> Iterator[ServerProcess]:
            with databases.copy(template) as url:
                server = ServerProcess(directory, url, env)
                for name in ("truth", "storage"):
                    copytree(original.data_dir / name, server.data_dir / name)
                with server:
                    yield server

        yield opened


@pytest.fixture(scope="session")
def shared_platform(
    open_platform: OpenPlatform, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """Such a server for modules whose tests have accounts of their own and count nothing but theirs."""
    with open_platform(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def platform(
    request: pytest.FixtureRequest, open_platform: OpenPlatform, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The shared server, or one of the module's own, where it has settings for it in ``PLATFORM``."""
    env: Mapping[str, str] | None = getattr(request.module, "PLATFORM", None)
    if env is None:
        yield request.getfixturevalue("shared_platform")
        return
    with open_platform(tmp_path_factory.mktemp("server"), env) as server:
        yield server


@pytest.fixture
def start_platform(open_platform: OpenPlatform, tmp_path: Path) -> Iterator[StartServer]:
    """Starts such a server for one test alone, with settings of its choice."""
    with ExitStack() as servers:
        yield lambda env=None: servers.enter_context(open_platform(tmp_path / "server", env))


@pytest.fixture
def fresh_platform(start_platform: StartServer) -> ServerProcess:
    """The same without further settings, and without accounts so far."""
    return start_platform()


def import_truth(server: ServerProcess, task: str = "tracking") -> None:
    done = server.run(
        *("truth", "import", task, "--from", str(EVENTS)),
        *("--config", "ttbar_pu0", "--events", f"{FIRST}:{STOP}"),
    )
    assert done.returncode == 0, done.stderr


def calling(server: ServerProcess, **headers: str) -> httpx.Client:
    """A client of the server, anonymous unless ``headers`` authenticate it."""
    return httpx.Client(base_url=server.base_url, headers=headers, timeout=60, trust_env=False)


def signed_in(server: ServerProcess, name: str) -> httpx.Client:
    """A client that calls as a new account of that name."""
    return calling(server, Authorization=f"Bearer {token_on(server.data_dir / 'hub', name)}")


def operating(server: ServerProcess, token: str | None = None) -> httpx.Client:
    """A client that calls as an operator, by default the first."""
    return calling(server, **{"X-Admin-Token": server.admin_token if token is None else token})


_serial = count()


def ok(answer: httpx.Response, status: int = 200) -> Any:
    """The JSON of a response that has the status."""
    assert answer.status_code == status, answer.text
    return answer.json()


def refused(answer: httpx.Response, status: int, reason: str) -> None:
    """Require an error with the status and the reason."""
    assert (answer.status_code, reason in answer.json()["detail"]) == (status, True), answer.text


def pages_of(client: httpx.Client, path: str) -> list[list[Any]]:
    """The pages of a list, followed by their links."""
    pages = []
    while path:
        answer = client.get(path)
        pages.append(ok(answer))
        path = answer.links.get("next", {}).get("url", "")
    return pages


def name_of(client: httpx.Client) -> str:
    """The account that a client calls as."""
    return str(client.get("/v1/me").json()["hub_username"])


def credits_of(client: httpx.Client) -> float:
    """The balance of the client's account."""
    return float(client.get("/v1/me").json()["credits"])


def submission_ids(answer: httpx.Response) -> list[str]:
    return [submission["submission_id"] for submission in ok(answer)]


@pytest.fixture
def alice(platform: ServerProcess) -> Iterator[httpx.Client]:
    """A client that calls as an account of its own."""
    with signed_in(platform, f"alice{next(_serial)}") as client:
        yield client


@contextmanager
def signing_in(server: ServerProcess) -> Iterator[SignIn]:
    """Makes clients of the server, each signed in as a new account."""
    with ExitStack() as clients:
        yield lambda name: clients.enter_context(signed_in(server, name))


@pytest.fixture
def caller(fresh_platform: ServerProcess) -> Iterator[SignIn]:
    with signing_in(fresh_platform) as sign_in:
        yield sign_in


@pytest.fixture
def timed(open_timed: OpenPlatform, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of the timed task for one test alone."""
    with open_timed(tmp_path / "server", {"PLATFORM_REWARDS_PER_DAY": "20"}) as server:
        yield server


@pytest.fixture
def sign_in(timed: ServerProcess) -> Iterator[SignIn]:
    with signing_in(timed) as sign_in:
        yield sign_in


@pytest.fixture
def anonymous(platform: ServerProcess) -> Iterator[httpx.Client]:
    with calling(platform) as client:
        yield client


@pytest.fixture
def operator(platform: ServerProcess) -> Iterator[httpx.Client]:
    with operating(platform) as client:
        yield client


def hits_with_truth() -> pa.Table:
    """The eval hits with their truth, a row each."""
    table = pq.read_table(EVENTS / "tracker_hits.parquet")
    flat = flatten(table, ["hit_id", "particle_id"])
    event = flat.column("event_id").to_numpy()
    return flat.filter(pa.array((event >= FIRST) & (event < STOP)))


def perfect(hits: pa.Table) -> pa.Table:
    """Perfect predictions: each particle a track."""
    return pa.table(
        {
            "event_id": hits["event_id"],
            "hit_id": hits["hit_id"],
            "track_id": hits["particle_id"].cast(pa.int64()),
        }
    )


@pytest.fixture(scope="session")
def hits() -> pa.Table:
    return hits_with_truth()


@pytest.fixture(scope="session")
def oracle(hits: pa.Table) -> pa.Table:
    return perfect(hits)


def spoiled(oracle: pa.Table, keep: float, seed: int = 0) -> pa.Table:
    """The oracle with only a part of its hits assigned."""
    lost = np.random.default_rng(seed).random(oracle.num_rows) > keep
    tracks = np.where(lost, -1, oracle["track_id"].to_numpy())
    return oracle.set_column(2, "track_id", pa.array(tracks))


def slowly(content: bytes, begun: Event, go_on: Event) -> Iterator[bytes]:
    """A body whose rest waits for ``go_on``."""
    yield content[:1000]
    begun.set()
    assert go_on.wait(60)
    yield content[1000:]


def parquet(table: pa.Table, **options: object) -> bytes:
    """The table as the bytes of a parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def files_below(directory: Path) -> list[Path]:
    """All files, at any depth."""
    return [path for path in directory.rglob("*") if path.is_file()] if directory.exists() else []
