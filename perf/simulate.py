"""Orders with 100,000 requests in the table, against a backend that sums the month on every order.

    python perf/simulate.py [--quick]

One server process each, on SQLite; 8 connections from this process. CPU is the server's user and system time
from /proc, and with it that of SQLite. The other backend is this one, with the running totals replaced by a
sum over the month's requests (a plugin of this script does that), so that nothing else differs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx

from collidium import database
from collidium.simulations import totals
from collidium.simulations.models import SimulationRequest
from collidium.testing.server import ServerProcess

CONNECTIONS = 8
TICKS = os.sysconf("SC_CLK_TCK")
LIMITS = {
    "PLATFORM_BURST_REQUESTS": "100000",
    "PLATFORM_UNFINISHED_REQUESTS": "100000",
    "PLATFORM_MONTHLY_NODE_HOURS": "1000000000",
    "PLATFORM_SIGNUP_GRANT": "1000000",
    "PLATFORM_FOLLOW_REQUESTS": "false",
    "PLATFORM_LOG_LEVEL": "warning",
}
#: The naive way: how much the month has taken is what its requests add up to.
NAIVE = """
from decimal import Decimal
from tortoise.timezone import now
from collidium.database import connection
from collidium.errors import TooManyRequests
from collidium.simulations import totals

async def add_request(row, monthly_node_hours):
    _, rows = await connection().execute_query(
        "SELECT COALESCE(SUM(node_hours), 0) AS total FROM simulation_requests "
        f"WHERE created_day >= '{now():%Y-%m}-01'"
    )
    if Decimal(rows[0]["total"]) + row.node_hours > monthly_node_hours:
        raise TooManyRequests("the month is used up", retry_after=3600)

totals.add_request = add_request
"""


def cpu_seconds(pid: int) -> float:
    """User and system time of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def fill(url: str, requests: int) -> None:
    """Write finished requests of a hundred accounts into the current month, totals included."""
    async with database.connected(url):
        moment = datetime.now(UTC)
        names = [f"user{n}" for n in range(100)]
        channels = ["ttbar", "jets", "zmumu", "higgs_portal", "single_muon"]
        rows = [
            SimulationRequest(
                request_id=f"{n:032x}",
                account_id=n % len(names) + 1_000_000,
                hub_username=names[n % len(names)],
                channel=channels[n % len(channels)],
                events=10,
                pileup=0,
                seed=n,
                pipeline_version="pipeline-v0.1.0",
                config_hash=f"{n:064x}",
                state="completed",
                created_at=moment,
                created_day=totals.day_of(moment),
                finished_at=moment,
                finished_month=totals.month_of(moment),
                credits_charged=Decimal("0.100"),
                estimated_node_hours=Decimal("0.100"),
                node_hours=Decimal("0.100"),
                runner="mock",
                is_mock=True,
                handle=f"{n:032x}",
                node_seconds=360,
                step="",
            )
            for n in range(requests)
        ]
        await SimulationRequest.bulk_create(rows, batch_size=500)
        await totals.rebuild()


async def order(server: ServerProcess, token: str, first_seed: int, count: int) -> None:
    """Place orders that nothing answers, over CONNECTIONS connections."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=server.base_url, headers=headers, timeout=60, trust_env=False
    ) as http:

        async def place(connection: int) -> None:
            for seed in range(first_seed + connection, first_seed + count, CONNECTIONS):
                body = {"channel": "ttbar", "events": 1, "pileup": 0, "seed": seed}
                answer = await http.post("/v1/simulate", json=body)
                assert answer.status_code == 202, answer.text

        await asyncio.gather(*(place(connection) for connection in range(CONNECTIONS)))


@contextmanager
def server_with(
    requests: int, directory: Path, env: Mapping[str, str]
) -> Iterator[tuple[ServerProcess, str]]:
    """A warm server with that many requests in its table, and a user's token."""
    with ServerProcess(directory, env=LIMITS | dict(env)) as server:
        token = server.add_user("alice")
        asyncio.run(order(server, token, 0, 2 * CONNECTIONS))
        asyncio.run(fill(f"sqlite:///{server.data_dir / 'collidium.sqlite3'}", requests))
        asyncio.run(order(server, token, 1_000, 2 * CONNECTIONS))
        yield server, token


def cost_of_orders(name: str, server: ServerProcess, token: str, orders: int) -> float:
    """CPU seconds per order; prints them."""
    before, started = cpu_seconds(server.pid), time.perf_counter()
    asyncio.run(order(server, token, 10_000, orders))
    used, wall = cpu_seconds(server.pid) - before, time.perf_counter() - started
    print(f"| {name} | {orders / wall:.0f} | {orders / used:.0f} | {used / orders * 1000:.2f} |")
    return used / orders


def delays_of_reports(server: ServerProcess) -> Iterator[str]:
    """How long the operators' reports take, a line of the table each."""
    headers = {"X-Admin-Token": server.admin_token}
    with httpx.Client(base_url=server.base_url, headers=headers, trust_env=False) as http:
        for path in (
            "/admin/usage?limit=50",
            "/admin/analytics/channels",
            "/admin/analytics/daily?days=30",
            "/admin/analytics/failures",
        ):
            delays = []
            for _ in range(50):
                started = time.perf_counter()
                assert http.get(path).status_code == 200
                delays.append((time.perf_counter() - started) * 1000)
            yield f"| GET {path} | {statistics.median(delays):.1f} | {max(delays):.1f} |"


def install_naive(site: Path) -> dict[str, str]:
    """The plugin that sums the month, as a distribution; the environment that finds it."""
    metadata = site / "summing-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "summing.py").write_text(NAIVE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: summing\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[collidium]\nsumming = summing\n")
    return {"PYTHONPATH": str(site)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    requests, orders = (1_000, 40) if parser.parse_args().quick else (100_000, 1_000)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        print(f"| POST /v1/simulate, {requests:,} requests kept | per second | per CPU second | CPU (ms) |")
        print("|---|---:|---:|---:|")
        with server_with(requests, directory / "totals", {}) as (server, token):
            ours = cost_of_orders("running totals", server, token, orders)
            reports = list(delays_of_reports(server))
        with server_with(requests, directory / "naive", install_naive(directory / "site")) as (server, token):
            naive = cost_of_orders("sums the month on every order", server, token, max(orders // 5, 20))
    print(f"\nratio: {naive / ours:.1f}\n\n| report | median (ms) | largest |\n|---|---:|---:|")
    print("\n".join(reports))


if __name__ == "__main__":
    main()
