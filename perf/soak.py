"""A bounded soak: clients and an operator at work while servers and workers are killed.

    python perf/soak.py [--minutes 10] [--database postgresql] [--quick]

A server of two processes and a `collidium worker`, the mock runner, a hub on a server of its own and 20
clients on loopback. Every 10 to 30 seconds SIGKILL ends the whole server, one process of it, the worker, or
the hub, which is then away for some seconds. At the end everything has to have ended, and the books have to
be right; exits with 1 if something is not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import soak_proof
from soak_load import FIRST, STOP, Customer, Seen, operate, oracle, patiently

from collidium import errors
from collidium.client import AsyncClient
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.databases import PostgresDatabases, sqlite_url
from collidium.testing.postgres import PostgresServer
from collidium.testing.processes import ending_with_parent, members, wait_until
from collidium.testing.server import ServerProcess
from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.store import Store

SETTINGS = {
    "PLATFORM_WORKERS": "2",
    "PLATFORM_SCORING_WORKERS": "1",
    "PLATFORM_SIGNUP_GRANT": "5",
    "PLATFORM_BURST_REQUESTS": "30",
    "PLATFORM_BURST_SECONDS": "20",
    "PLATFORM_MOCK_SECONDS": "1",
    "PLATFORM_POLL_SECONDS": "0.5",
    # Short, so that another process soon takes over what a killed one held.
    "PLATFORM_LEASE_SECONDS": "5",
}
#: Longest time until everything has ended, once orders have stopped.
SETTLE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Load:
    """How much, and for how long, in seconds."""

    seconds: float
    clients: int
    pause: tuple[float, float]
    newcomer_seconds: float
    hub_away: tuple[float, float]


@dataclass(slots=True)
class Recoveries:
    """Kills by kind, and the seconds that each took until the server was ready again."""

    kills: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    slowest: float = 0.0

    def count(self, kind: str) -> None:
        self.kills[kind] = self.kills.get(kind, 0) + 1


class Site:
    """The server, the worker and the hub, to be killed and started again on the same port and data."""

    def __init__(self, directory: Path, database_url: str | None, hub_away: tuple[float, float]) -> None:
        self.hub = ServerProcess(directory / "hub")
        self.server = ServerProcess(directory / "server", database_url, SETTINGS)
        self._hub_away = hub_away
        self.database_url = database_url or sqlite_url(self.server.data_dir / "collidium.sqlite3")
        self.recoveries = Recoveries()
        #: Anonymous memory in bytes, open files and processes, as they were in turn.
        self.held: list[tuple[int, int, int]] = []
        self._worker: subprocess.Popen[bytes] | None = None
        # The kernel ends the processes with the thread that started them.
        self._thread = ThreadPoolExecutor(1)

    async def in_thread(self, work: Callable[..., None], *arguments: object) -> None:
        """Do it without holding up the clients."""
        await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def open(self) -> None:
        self._thread.submit(self._open).result()

    def _open(self) -> None:
        self.hub.start()
        self.server.environment["PLATFORM_HUB_URL"] = f"{self.hub.base_url}/hub"
        self.server.start()
        self._port = urlsplit(self.server.base_url).port or 0
        truth = ("--config", "ttbar_pu0", "--events", f"{FIRST}:{STOP}")
        done = self.server.run("truth", "import", "tracking", "--from", str(EVENTS_DIRECTORY), *truth)
        if done.returncode:
            raise RuntimeError(done.stderr)
        self._start_worker()

    def close(self) -> list[str]:
        """Stop all as an operator does, once the last kill is over; what went wrong, and what is left."""
        return self._thread.submit(self._close).result()

    def _close(self) -> list[str]:
        ours = {self.server.pid, *children(self.server.pid)}
        problems = [
            f"process {pid} has lost its parent and lives" for pid in {*members(self.server.pid)} - ours
        ]
        for name, server in (("server", self.server), ("hub", self.hub)):
            if (code := server.stop()) != 0:
                problems.append(f"the {name} ended with {code}")
        assert self._worker is not None
        self._worker.terminate()
        if (code := self._worker.wait(60)) != 0:
            problems.append(f"the worker ended with {code}")
        for name in ("uploads", "outputs"):
            left = (self.server.data_dir / name).iterdir()
            problems += [f"{path.name} is left in {name}" for path in left]
        return problems

    async def kill_now_and_then(self, pause: tuple[float, float]) -> None:
        """Kill something every so often, until cancelled."""
        kinds = ["server", "hub", "process", "worker"]
        while True:
            await asyncio.sleep(random.uniform(*pause))
            # Each in its turn at first, so that a short run has all of them.
            kind = kinds.pop() if kinds else random.choice(["server", "process", "process", "worker", "hub"])
            await asyncio.shield(self.in_thread(self.kill, kind))

    def kill(self, kind: str) -> None:
        """SIGKILL, and back to where all is well."""
        self.recoveries.count(kind)
        started = time.monotonic()
        if kind == "worker":
            assert self._worker is not None
            self._worker.kill()
            self._worker.wait()
            self._start_worker()
            return
        if kind == "hub":
            port = urlsplit(self.hub.base_url).port or 0
            self.hub.kill()
            time.sleep(random.uniform(*self._hub_away))
            self.hub.start(port=port)
            return
        if kind == "process" and (processes := children(self.server.pid)):
            with suppress(ProcessLookupError):
                os.kill(random.choice(processes), signal.SIGKILL)
        else:
            self.server.kill()
            self.server.start(port=self._port)
            self.recoveries.restarts += 1
        while not self._ready():
            time.sleep(0.05)
        self.recoveries.slowest = max(self.recoveries.slowest, time.monotonic() - started)

    async def measure_now_and_then(self) -> None:
        """Note what server and worker hold, every two seconds until cancelled."""
        while True:
            await asyncio.sleep(2)
            assert self._worker is not None
            pids = [pid for root in (self.server.pid, self._worker.pid) for pid in (root, *children(root))]
            # What has just been killed, or begins, is not what is held.
            with suppress(OSError, ValueError):
                self.held.append((sum(map(anonymous, pids)), sum(map(open_files, pids)), len(pids)))

    def token(self, name: str) -> str:
        """A new account's on the hub."""
        store = Store(self.hub.data_dir / "hub")
        try:
            with store.database.writing() as db:
                return accounts.make_token(db, accounts.add(db, name))
        finally:
            store.close()

    def _ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.server.base_url}/readyz", timeout=5, trust_env=False).is_success
        return False

    def _start_worker(self) -> None:
        file = self.server.directory / "worker.log"
        with file.open("wb") as log:
            self._worker = subprocess.Popen(
                ending_with_parent([*self.server.program, "worker"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.server.directory,
                env=self.server.environment,
            )
        # Before, a signal to stop would end it as any other process.
        wait_until(lambda: "Following requests." in file.read_text(), self._worker, 60, file.read_text)


def children(pid: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *children(child)]
    return found


def anonymous(pid: int) -> int:
    """The memory of a process that no file backs, in bytes. Raises ValueError where it has ended."""
    words = Path(f"/proc/{pid}/status").read_text().split()
    return int(words[words.index("RssAnon:") + 1]) * 1024


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def thirds(values: Sequence[int]) -> str:
    """The medians of the first, second and last third, in a cell."""
    parts = [values[len(values) * n // 3 : len(values) * (n + 1) // 3] for n in range(3)]
    return ", ".join(f"{statistics.median(part):,.0f}" if part else "-" for part in parts)


async def soak(site: Site, load: Load) -> Seen:
    """The load until its time is over, then until everything has ended."""
    seen, hits = Seen(), oracle()
    customers: list[Customer] = []

    def sign_up() -> Customer:
        name = f"user{len(customers)}"
        customers.append(Customer(site.server.base_url, site.token(name), name, seen, hits))
        return customers[-1]

    async def newcomers(tasks: list[asyncio.Task[None]]) -> None:
        while True:
            await asyncio.sleep(load.newcomer_seconds)
            # The oldest process leaves, so that the load stays the same.
            tasks.pop(0).cancel()
            tasks.append(asyncio.create_task(sign_up().live()))

    async with AsyncClient(site.server.base_url, admin_token=site.server.admin_token) as operator:
        living = [asyncio.create_task(sign_up().live()) for _ in range(load.clients)]
        others = [
            asyncio.create_task(work)
            for work in (
                operate(operator, seen),
                newcomers(living),
                site.kill_now_and_then(load.pause),
                site.measure_now_and_then(),
            )
        ]
        await asyncio.wait(others, timeout=load.seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (*living, *others):
            task.cancel()
        for outcome in await asyncio.gather(*living, *others, return_exceptions=True):
            if not isinstance(outcome, asyncio.CancelledError):
                seen.faults.append(f"the soak itself failed: {outcome!r}")
        await patiently(seen, lambda: operator.admin_freeze(False))
        for name in seen.orders:
            # Whose calls never came through has no account.
            with suppress(errors.NotFound):
                await operator.admin_grant(name, Decimal(5), "to be asked again")
                await operator.admin_ban(name, False)
    await asyncio.gather(*(customer.settle() for customer in customers))
    await soak_proof.ended(site.database_url, SETTLE_SECONDS)
    for customer in customers:
        await customer.close()
    return seen


def report(site: Site, seen: Seen, states: Mapping[str, int]) -> Iterator[str]:
    """The table of what happened."""
    accepted = list(seen.accepted)
    rows: dict[str, object] = {
        "accounts": len(seen.orders),
        "orders sent": f"{sum(map(len, seen.orders.values())):,}",
        "orders accepted": f"{len(accepted):,}",
        "of these answered by another's": sum(order.cached for order in accepted),
        "requests": counted(states),
        "cancellations taken": f"{seen.cancelled:,}",
        "submissions scored": f"{len(seen.submissions):,}",
        "grants, bans, freezes": f"{seen.grants}, {seen.bans}, {seen.freezes}",
        "kills": counted(site.recoveries.kills),
        "restarts of the server": site.recoveries.restarts,
        "slowest recovery (s)": f"{site.recoveries.slowest:.1f}",
        "slowest request that was waited for (s)": f"{max(seen.waited, default=0):.1f}",
        "processes, by thirds of the time": thirds([processes for _, _, processes in site.held]),
        "open files": thirds([files for _, files, _ in site.held]),
        "anonymous memory (MB)": thirds([memory // 10**6 for memory, _, _ in site.held]),
        "answers that were no success": counted(seen.troubles),
    }
    yield "| | |\n|---|---:|"
    yield from (f"| {name} | {value} |" for name, value in rows.items())


def counted(counts: Mapping[str, int]) -> str:
    """Numbers by name, in a cell."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def run(directory: Path, database_url: str | None, load: Load) -> int:
    """The soak; how many things are wrong."""
    site = Site(directory, database_url, load.hub_away)
    try:
        site.open()
        seen = asyncio.run(soak(site, load))
        wrong = seen.faults + site.close()
        audit = site.server.run("ledger", "audit")
        if audit.returncode:
            wrong.append(f"collidium ledger audit: {audit.stdout} {audit.stderr}")
        wrong += asyncio.run(soak_proof.problems(site.database_url, seen))
        print("\n".join(report(site, seen, asyncio.run(soak_proof.states(site.database_url)))))
        print(f"\naudit: {'; '.join(audit.stdout.split(chr(10))).strip('; ')}")
    finally:
        site.server.close()
        site.hub.close()
    for problem in wrong[:50]:
        print(f"WRONG: {problem}")
    print(f"{len(wrong)} things are wrong" if wrong else "nothing is wrong")
    return len(wrong)


@contextmanager
def database_of(kind: str) -> Iterator[str | None]:
    """Its address; None for the server's own SQLite file."""
    if kind == "sqlite":
        yield None
        return
    with PostgresServer() as postgres, PostgresDatabases(postgres).migrated() as url:
        yield url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    given = parser.parse_args()
    load = Load(given.minutes * 60, clients=20, pause=(10, 30), newcomer_seconds=15, hub_away=(5, 20))
    if given.quick:
        load = Load(3, clients=4, pause=(1, 1.5), newcomer_seconds=1, hub_away=(0.5, 1))
    with tempfile.TemporaryDirectory() as name, database_of(given.database) as url:
        wrong = run(Path(name), url, load)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
