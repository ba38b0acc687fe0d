"""CPU of orders, and of operators' reports, with ever more requests in the table.

One server process that follows nothing, on SQLite and on PostgreSQL. The rows are of the current month and of
a hundred accounts; the orders are of eight others, who have nothing unfinished when a measurement begins.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from measuring import COUNT, Call, Figure, Target, by_turns, call, on_both_databases

from collidium import database
from collidium.database import connection
from collidium.order import Order
from collidium.simulations import totals
from collidium.simulations.models import order_columns
from collidium.testing.server import ServerProcess

ACCOUNTS = 8
#: Requests in the table. Ten million take five minutes of a core to write, and 10 GB.
SIZES = tuple(map(int, os.environ.get("COLLIDIUM_PERF_ROWS", "0 100000 1000000").split()))
SETTINGS = {
    "PLATFORM_BURST_REQUESTS": "100000",
    "PLATFORM_UNFINISHED_REQUESTS": "100000",
    "PLATFORM_MONTHLY_NODE_HOURS": "1000000000",
    "PLATFORM_SIGNUP_GRANT": "1000000",
    "PLATFORM_FOLLOW_REQUESTS": "false",
    "PLATFORM_LOG_LEVEL": "warning",
}

#: Numbers, and one of them in 32 hexadecimal digits.
SERIES = {
    "sqlite": (
        "WITH RECURSIVE n(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM n WHERE n < {last})",
        "printf('%032x', n)",
    ),
    "postgres": ("WITH n(n) AS (SELECT generate_series({first}, {last}))", "lpad(to_hex(n), 32, '0')"),
}
COLUMNS = {
    "request_id": "{hex}",
    "account_id": "1000000 + n % 100",
    "hub_username": "'user' || n % 100",
    "channel": "CASE n % 3 WHEN 0 THEN 'ttbar' WHEN 1 THEN 'jets' ELSE 'zmumu' END",
    "seed": "n % 1000000",
    "order_json": "'{order}'",
    "config_hash": "{hex}",
    "handle": "{hex}",
    "node_seconds": "10",
    **dict.fromkeys(("attempts", "denials", "credits_refunded"), "0"),
    "private": "false",
    "is_mock": "true",
    **dict.fromkeys(("created_at", "finished_at"), "'{moment}'"),
    "created_day": "'{day}'",
    "finished_month": "'{month}'",
    **dict.fromkeys(("credits_charged", "estimated_node_hours", "node_hours"), "0.1"),
    **dict.fromkeys(("pipeline_version", "runner"), "'mock'"),
    "state": "'completed'",
    **dict.fromkeys(("step", "lease"), "''"),
}


async def fill(url: str, first: int, last: int) -> None:
    """Write completed requests with these numbers, totals included; end those that are unfinished."""
    async with database.connected(url):
        kind = "sqlite" if url.startswith("sqlite") else "postgres"
        series, digits = SERIES[kind]
        moment = datetime.now(UTC)
        days = {"moment": moment, "day": totals.day_of(moment), "month": totals.month_of(moment)}
        days["order"] = order_columns(Order("ttbar", 10, 0))["order_json"]
        values = ", ".join(value.format(hex=digits, **days) for value in COLUMNS.values())
        await connection().execute_script(
            "UPDATE simulation_requests SET state = 'cancelled', step = '', due_at = NULL "
            "WHERE state = 'queued'"
        )
        if first <= last:
            await connection().execute_script(
                f"INSERT INTO simulation_requests ({', '.join(COLUMNS)}) "  # noqa: S608 -- constants
                f"{series.format(first=first, last=last)} SELECT {values} FROM n"
            )
        await totals.rebuild()
        if kind == "postgres":
            await connection().execute_script("VACUUM ANALYZE simulation_requests")


def orders(tokens: list[str], first_seed: int) -> Call:
    """Orders that nothing in the table answers, of each account in turn."""

    def body(number: int) -> dict[str, object]:
        return {"channel": "ttbar", "events": 1, "pileup": 0, "seed": first_seed + number}

    of_each = [call("/v1/simulate", {"Authorization": f"Bearer {token}"}, body) for token in tokens]
    return lambda number: of_each[number % len(of_each)](number)


def measure(kind: str, directory: Path, database_url: str | None, quick: bool) -> Iterator[Figure]:
    with ServerProcess(directory, database_url, SETTINGS) as server:
        target = Target(server.base_url, server.pid)
        url = database_url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"
        tokens = [server.add_user(f"alice{number}") for number in range(ACCOUNTS)]
        admin = {"X-Admin-Token": server.admin_token}
        written = 0
        for number, size in enumerate((0, 1000) if quick else SIZES):
            asyncio.run(fill(url, written + 1, size))
            written = size
            name = f"POST /v1/simulate, {size:,} requests kept, {kind}"
            yield from by_turns(target, {name: orders(tokens, number * 100 * COUNT)}, quick)
        reports = {
            f"GET /admin/{path}, {written:,} requests kept, {kind}": call(f"/admin/{path}", admin)
            for path in ("overview", "usage?limit=50")
        }
        yield from by_turns(target, reports, quick)


def figures(quick: bool) -> Iterator[Figure]:
    return on_both_databases(measure, quick)
