"""``collidium serve``: real processes, real signals, real connections."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.distributions import install
from tests.ports import free_ports
from tests.waiting import eventually

from collidium import settings
from collidium.errors import ConfigurationError
from collidium.files.held import DIRECTORY, FILE, PREFIX, held_directory
from collidium.server.supervisor import REAL_EVENTS, listeners_of
from collidium.testing.server import ServerProcess

#: A request that is in flight for as long as a test wants, and one that names the process that answers.
GATE = """
import asyncio, os
from pathlib import Path
from quart import Blueprint
from collidium.hookspecs import hookimpl

blueprint = Blueprint("gate", __name__, url_prefix="/gate")
HERE = Path(__file__).parent

@blueprint.get("/wait")
async def wait():
    (HERE / "waiting").touch()
    while not (HERE / "open").exists():
        await asyncio.sleep(0.01)
    return {"through": True}

@blueprint.get("/files")
async def files():
    os.system("readlink /proc/self/fd/* > " + str(HERE / "files"))
    return (HERE / "files").read_text().split()

@blueprint.get("/pid")
async def pid():
    return {"pid": os.getpid()}

@hookimpl
def collidium_blueprints(settings):
    if (HERE / "deadly").exists():
        (HERE / "once").exists() and (HERE / "deadly").unlink()
        os.kill(os.getpid(), 9)
    return [blueprint]
"""

StartServe = Callable[..., ServerProcess]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return install_gate(tmp_path)


def install_gate(directory: Path) -> Path:
    site = directory / "site"
    install(site, "gate", {"gate": GATE})
    return site


@pytest.fixture
def serve(tmp_path: Path, site: Path) -> Iterator[StartServe]:
    """Starts servers on embedded defaults that share a data directory; all are ended after the test."""
    with ExitStack() as servers:

        def start(**variables: str) -> ServerProcess:
            server = ServerProcess(tmp_path / "server", env={"PYTHONPATH": str(site), **variables})
            return servers.enter_context(server)

        yield start


def get(server: ServerProcess, path: str, **options: Any) -> httpx.Response:
    return httpx.get(server.base_url + path, timeout=60, trust_env=False, **options)


def listens(server: ServerProcess) -> bool:
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def pids(server: ServerProcess, wanted: int) -> set[int]:
    """The processes that answer, once there are so many."""
    seen: set[int] = set()

    def enough() -> bool:
        seen.add(get(server, "/gate/pid").json()["pid"])
        return len(seen) >= wanted

    eventually(enough)
    return seen


def alive(pid: int) -> bool:
    stat_file = Path(f"/proc/{pid}/stat")
    return stat_file.exists() and stat_file.read_text().rsplit(")", 1)[1].split()[0] != "Z"


# -- a fresh machine ---------------------------------------------------------------------------------


def test_the_addresses_and_nothing_else_are_printed(serve: StartServe) -> None:
    server = serve(ADMIN_TOKEN="of-my-own")
    assert get(server, "/readyz").json()["status"] == "ready"
    assert get(server, "/admin/audit", headers={"X-Admin-Token": "of-my-own"}).status_code == 200
    assert not (server.data_dir / "admin-token").exists(), "it has a token"
    assert server.stop() == 0
    assert (server.directory / "server.out").read_text() == (
        f"Collidium is at {server.base_url}\nIts hub is at {server.hub_url}\n{REAL_EVENTS}\n"
    )


def test_first_start_creates_a_private_admin_token(serve: StartServe) -> None:
    server = serve()
    path = server.data_dir / "admin-token"
    token = server.admin_token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) >= 32
    assert f"A new admin token is in {path}" in server.log()
    answer = httpx.get(f"{server.base_url}/admin/audit", headers={"X-Admin-Token": token}, trust_env=False)
    assert answer.status_code == 200
    server.stop()
    assert token not in server.log()
    server.start()
    assert server.admin_token == token
    assert server.log().count("A new admin token") == 1


def test_files_of_the_platform_are_private(serve: StartServe) -> None:
    before = os.umask(0)
    try:
        server = serve()
    finally:
        os.umask(before)
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((server.data_dir / settings.SQLITE_FILE).stat().st_mode) == 0o600
    for path in ("truth", "storage", "uploads", "hub"):
        assert not stat.S_IMODE((server.data_dir / path).stat().st_mode) & 0o007, path
    # What an earlier release left open is closed.
    server.stop()
    (server.data_dir / "mock-jobs").mkdir()
    for path in ("collidium.sqlite3", "truth", "storage", "mock-jobs"):
        (server.data_dir / path).chmod(0o755)
    server.start()
    for path in ("collidium.sqlite3", "truth", "storage", "mock-jobs"):
        assert not stat.S_IMODE((server.data_dir / path).stat().st_mode) & 0o007, path


def test_as_many_files_may_be_open_as_the_system_allows(serve: StartServe) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        server = serve()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.prlimit(server.pid, resource.RLIMIT_NOFILE) == (hard, hard)


def test_what_machines_share_has_to_be_set(tmp_path: Path) -> None:
    """Each machine would make its own of a secret key, an admin token and a hub."""
    variables = {"PLATFORM_DATABASE_URL": "postgres://unknown@127.0.0.1:1/none"}
    server = ServerProcess(tmp_path, env=variables)
    done = server.run("serve", "--port", "0")
    assert done.returncode == 1
    for name in ("PLATFORM_SECRET_KEY", "ADMIN_TOKEN", "PLATFORM_HUB_URL"):
        assert f"{name} is not set" in " ".join(done.stderr.split())
    assert not list(server.data_dir.glob("*"))
    others = {"PLATFORM_SECRET_KEY": "key", "ADMIN_TOKEN": "token"}
    done = ServerProcess(tmp_path, env=variables | others).run("worker")
    assert "PLATFORM_HUB_URL is not set" in " ".join(done.stderr.split())
    assert "ADMIN_TOKEN" not in done.stderr
    example = {"PLATFORM_SECRET_KEY": "key", "ADMIN_TOKEN": "CHANGE-ME", "PLATFORM_HUB_URL": "local"}
    done = ServerProcess(tmp_path, env=variables | example).run("serve", "--port", "0")
    assert "a secret is still CHANGE-ME" in " ".join(done.stderr.split())


# -- the hub's own port ----------------------------------------------------------------------------------


@contextmanager
def two_ports() -> Iterator[tuple[int, int]]:
    """A free port and the one after it."""
    while True:
        (port,) = free_ports(1)
        with suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
            break
    yield port, port + 1


def ports_of(**options: object) -> list[int]:
    """Where a server with these settings listens."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in listeners_of(settings.load(**options))]
        return [listener.getsockname()[1] for listener in listeners]


def test_the_hub_has_the_port_after_the_servers() -> None:
    with two_ports() as (port, following):
        assert ports_of(port=port) == [port, following]
        assert ports_of(port=0, hub_port=following)[1:] == [following]
        assert len(set(ports_of(port=0))) == 2


def test_the_hub_needs_no_port() -> None:
    for options in ({"hub_port": 0}, {"hub_url": "https://hub.example.org"}):
        assert len(ports_of(port=0, **options)) == 1


def test_a_port_of_the_hub_that_is_taken() -> None:
    with two_ports() as (port, taken), socket.create_server(("127.0.0.1", taken)):
        for options in ({"port": port}, {"port": 0, "hub_port": taken}):
            with pytest.raises(ConfigurationError, match=f"on port {taken} .*PLATFORM_HUB_PORT"):
                ports_of(**options)


def test_the_last_port_has_none_after_it() -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_HUB_PORT"):
        ports_of(port=65535)


# -- what stops it from starting -----------------------------------------------------------------------


def fails(serve_arguments: tuple[str, ...], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "collidium", "serve", *serve_arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_port_that_is_taken(isolated_environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = fails(("--port", str(port)), isolated_environment)
    assert f"cannot listen on port {port} of 127.0.0.1" in output


def test_a_host_that_is_none(isolated_environment: dict[str, str]) -> None:
    assert "cannot listen on nowhere.invalid" in fails(("--host", "nowhere.invalid"), isolated_environment)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_part_that_is_not_installed(isolated_environment: dict[str, str], workers: str) -> None:
    output = fails(
        ("--port", "0", "--workers", workers), isolated_environment | {"PLATFORM_STORAGE": "cloud"}
    )
    assert "PLATFORM_STORAGE: no storage named 'cloud' is installed (there are: " in output


# -- how it stops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGTERM, "2"),
        (signal.SIGINT, "1"),
        pytest.param(signal.SIGTERM, "1", marks=pytest.mark.long),
        pytest.param(signal.SIGINT, "2", marks=pytest.mark.long),
    ],
)
def test_a_request_in_flight_is_finished(
    serve: StartServe, site: Path, workers: str, number: signal.Signals
) -> None:
    server = serve(PLATFORM_WORKERS=workers)
    processes = pids(server, int(workers))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(get, server, "/gate/wait")
        eventually((site / "waiting").exists)
        if number is signal.SIGINT:
            # As a terminal does it: to every process of the group.
            os.killpg(server.pid, number)
        else:
            os.kill(server.pid, number)
        eventually(lambda: not listens(server))
        assert not answer.done()
        (site / "open").touch()
        assert answer.result().json() == {"through": True}
    assert server.stop() == 0
    assert not any(alive(pid) for pid in processes)
    assert not list((server.data_dir / "metrics").glob("*"))
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.hub_url, trust_env=False)


def test_a_server_with_a_delay_first_has_its_proxy_leave(serve: StartServe) -> None:
    """It serves meanwhile, and keeps no connection on which a request may come when it closes it."""
    server = serve(PLATFORM_STOP_DELAY_SECONDS="300")
    with httpx.Client(base_url=server.base_url, trust_env=False) as proxy:
        assert "Connection" not in proxy.get("/healthz").headers
        os.kill(server.pid, signal.SIGTERM)
        eventually(lambda: proxy.get("/healthz").status_code == 503)
        ready = proxy.get("/readyz")
        assert (ready.status_code, ready.json()["status"], ready.json()["database"]) == (
            503,
            "stopping",
            "ok",
        )
        served = proxy.get("/gate/pid")
        assert (served.status_code, served.headers["Connection"]) == (200, "close")


# -- several processes -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the plugin that the two workers load."""
    return install_gate(tmp_path_factory.mktemp("gate"))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Iterator[ServerProcess]:
    """A server of two workers, whichever they are; the last test kills it."""
    variables = {"PYTHONPATH": str(gate), "PLATFORM_WORKERS": "2"}
    with ServerProcess(tmp_path_factory.mktemp("pair"), env=variables) as server:
        yield server


def descendants(pid: int) -> list[int]:
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [found for child in children for found in (child, *descendants(child))]


def test_every_worker_serves_the_metrics_of_all(pair: ServerProcess) -> None:
    answered = [get(pair, "/gate/pid").json()["pid"] for _ in range(20)]
    counted = 'collidium_http_requests_total{method="GET",route="/gate/pid",status="200"} '
    metrics = get(pair, "/metrics", headers={"X-Admin-Token": pair.admin_token}).text
    lines = [line for line in metrics.splitlines() if line.startswith(counted)]
    assert lines == [f"{counted}{len(answered)}.0"]
    # The directory in which they count together is held.
    assert len(list((pair.data_dir / "metrics").iterdir())) == 2


def test_workers_share_the_ports(pair: ServerProcess) -> None:
    assert len(pids(pair, 2)) == 2
    statuses = {httpx.get(f"{pair.hub_url}/api/models", trust_env=False).status_code for _ in range(20)}
    assert statuses == {200}


def test_a_failed_replacement_is_started_again(pair: ServerProcess, gate: Path) -> None:
    first, second = pids(pair, 2)
    deadly = gate / "sitecustomize.py"
    deadly.write_text("import os; os.kill(os.getpid(), 9)")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: f"worker {first} ended with -9 and is replaced" in pair.log())
    # Twice, each later than the one before: it is not given up, nor tried without a pause.
    eventually(lambda: "before it was ready; the next is tried in 1 s" in pair.log())
    assert get(pair, "/gate/pid").json()["pid"] == second
    # Not even the last one ends the service.
    os.kill(second, signal.SIGKILL)
    eventually(lambda: f"worker {second} ended with -9 and is replaced" in pair.log())
    eventually(lambda: pair.log().count("before it was ready; the next is tried in 0.5 s") >= 2)
    deadly.unlink()
    assert not pids(pair, 2) & {first, second}


def test_a_replaced_worker_does_not_warn_of_the_hub_again(serve: StartServe) -> None:
    server = serve(PLATFORM_WORKERS="2", PLATFORM_HUB_URL="http://127.0.0.1:9")
    warning = "the hub at http://127.0.0.1:9 does not respond"
    eventually(lambda: warning in server.log())
    first = pids(server, 2)
    for worker in first:
        os.kill(worker, signal.SIGKILL)
    eventually(lambda: server.log().count("is replaced") == 2)
    assert not pids(server, 2) & first
    assert server.stop() == 0
    assert server.log().count(warning) == 1


def test_nothing_outlives_a_supervisor_that_is_killed(pair: ServerProcess, gate: Path) -> None:
    pids(pair, 2)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(get, pair, "/gate/wait")
        eventually((gate / "waiting").exists)
        children = descendants(pair.pid)
        assert len(children) >= 3  # the workers, and what multiprocessing starts
        os.kill(pair.pid, signal.SIGKILL)
        eventually(lambda: not any(map(alive, children)), 5)  # a second where nothing else runs
        assert isinstance(answer.exception(), httpx.TransportError)
    eventually(lambda: not listens(pair))  # until a worker's last thread has ended
    late = "import os; from collidium.runtime.subprocesses import end_with_parent as end; end(os.getpid())"
    assert subprocess.run([sys.executable, "-c", late], check=False).returncode == -signal.SIGKILL


def test_a_server_that_is_killed_can_start_at_its_port(pair: ServerProcess) -> None:
    """The last thread of a worker may end long after the first, and holds the port until then."""
    port = int(pair.base_url.rpartition(":")[2])
    for _ in range(2):
        pair.kill()
        pair.start(port=port)
    pair.kill()
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_command_of_a_plugin_holds_the_port(serve: StartServe, workers: str) -> None:
    assert not [
        file for file in get(serve(PLATFORM_WORKERS=workers), "/gate/files").json() if "socket" in file
    ]


def test_a_worker_killed_before_it_was_ready_is_replaced(serve: StartServe, site: Path) -> None:
    (site / "deadly").touch()
    (site / "once").touch()
    server = serve(PLATFORM_WORKERS="2")
    pids(server, 2)
    assert "ended with -9 before it was ready; the next is tried in 0.5 s" in server.log()


def test_start_removes_files_of_killed_processes_only(serve: StartServe, tmp_path: Path) -> None:
    places = [tmp_path / "server/data" / place for place in ("uploads", "truth/tracking", "metrics")]
    places.append(tmp_path / "server/data/storage/INCOMING")
    for place in places:
        (place / f"{PREFIX}of-a-killed-one{DIRECTORY}").mkdir(parents=True)
        (place / f"{PREFIX}of-a-killed-one{FILE}").touch()
    with ExitStack() as others:
        held = [others.enter_context(held_directory(place)) for place in places]
        serve()
        assert not [path for place in places for path in place.glob(f"{PREFIX}of-a-killed-one*")]
        assert all(directory.exists() for directory in held)
