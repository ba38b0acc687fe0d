"""What operators ask of a server with 100,000 requests and 10,000 accounts.

    python perf/admin.py [--quick]

One server process on loopback, on SQLite and on PostgreSQL, one kept-alive connection. Times are those of a
call as the console sees it. ``/healthz`` is the least that any call takes; the ratios are to it, of the
fastest of each, because others may use the machine, too.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from admin_seed import RARE, fill, name_of

from collidium.testing.databases import PostgresDatabases
from collidium.testing.postgres import PostgresServer
from collidium.testing.server import ServerProcess

SETTINGS = {"PLATFORM_FOLLOW_REQUESTS": "false", "PLATFORM_LOG_LEVEL": "warning"}
PAGE = "limit=50"


def lists(requests: int, accounts: int) -> list[str]:
    """The calls, each as the console makes it; of lists the first page, and some far down."""
    middle, heavy = requests // 2, name_of(1)
    return [
        "/healthz",
        "/admin/overview",
        "/admin/usage?limit=50",
        "/admin/analytics/channels",
        "/admin/analytics/daily?days=30",
        "/admin/analytics/failures",
        f"/admin/requests?{PAGE}",
        f"/admin/requests?{PAGE}&cursor={middle}",
        f"/admin/requests?{PAGE}&state=failed",
        f"/admin/requests?{PAGE}&state=queued",
        f"/admin/requests?{PAGE}&channel={RARE}",
        f"/admin/requests?{PAGE}&channel={RARE}&state=failed",
        f"/admin/requests?{PAGE}&user={heavy}",
        f"/admin/requests?{PAGE}&user={heavy}&state=failed",
        f"/admin/accounts?{PAGE}",
        f"/admin/accounts?{PAGE}&sort=name&cursor={name_of(accounts // 2)}",
        f"/admin/accounts?{PAGE}&sort=credits",
        f"/admin/accounts?{PAGE}&search=99",
        f"/admin/accounts?{PAGE}&search=unknown",
        f"/admin/accounts?{PAGE}&banned=true",
        f"/admin/accounts/{heavy}/transactions?{PAGE}",
        f"/admin/submissions?{PAGE}",
        f"/admin/submissions?{PAGE}&task=tracking&cursor={requests // 10:032x}",
        f"/admin/submissions?{PAGE}&user={heavy}",
        f"/admin/submissions?{PAGE}&unverified=true",
        "/admin/tasks",
        f"/admin/audit?{PAGE}",
        f"/admin/audit?{PAGE}&cursor={requests // 20}",
    ]


def measured(
    server: ServerProcess, requests: int, accounts: int, repeats: int
) -> Iterator[tuple[str, list[float]]]:
    """Milliseconds of each call, again and again."""
    headers = {"X-Admin-Token": server.admin_token}
    now = datetime.now(UTC)
    refunds = {"from": f"{now - timedelta(days=10):%FT%TZ}", "to": f"{now:%FT%TZ}"}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=60, trust_env=False) as client:
        calls = [client.build_request("GET", path) for path in lists(requests, accounts)]
        calls.append(client.build_request("POST", "/admin/refunds", json=refunds))
        for call in calls:
            delays = []
            for _ in range(repeats):
                started = time.perf_counter()
                answer = client.send(call)
                delays.append((time.perf_counter() - started) * 1000)
                assert answer.status_code == 200, answer.text
            # The first one connects, and warms what is cached.
            yield f"{call.method} {call.url.raw_path.decode()}", delays[1:]


def table(
    server: ServerProcess, url: str, requests: int, accounts: int, repeats: int
) -> dict[str, tuple[float, float]]:
    """Fastest and median milliseconds of each call."""
    asyncio.run(fill(url, requests, accounts))
    return {
        name: (min(delays), statistics.median(delays))
        for name, delays in measured(server, requests, accounts, repeats)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    requests, accounts, repeats = (1_000, 100, 3) if parser.parse_args().quick else (100_000, 10_000, 51)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with ServerProcess(directory / "sqlite", env=SETTINGS) as server:
            url = f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"
            sqlite = table(server, url, requests, accounts, repeats)
        with (
            PostgresServer() as postgres,
            PostgresDatabases(postgres).migrated() as url,
            ServerProcess(directory / "postgresql", url, SETTINGS) as server,
        ):
            postgresql = table(server, url, requests, accounts, repeats)
    print(f"{requests:,} requests, {accounts:,} accounts; milliseconds\n")
    print("| call | SQLite: fastest | median | ratio | PostgreSQL: fastest | median | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    least = [kind["GET /healthz"][0] for kind in (sqlite, postgresql)]
    for call in sqlite:
        cells = (
            f"{kind[call][0]:.1f} | {kind[call][1]:.1f} | {kind[call][0] / first:.1f}"
            for kind, first in zip((sqlite, postgresql), least, strict=True)
        )
        print(f"| {call} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
