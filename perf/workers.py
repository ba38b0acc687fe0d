"""Requests per second of one, two and four server processes on a PostgreSQL that syncs what is committed.

Servers, database and client share the machine's cores. The control is one process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from measuring import COUNT, TURNS, Figure, call, send
from simulate import ACCOUNTS, SETTINGS, orders

from collidium.testing.databases import PostgresDatabases
from collidium.testing.postgres import PostgresServer
from collidium.testing.server import ServerProcess

WORKERS = (1, 2, 4)
CONNECTIONS = 16


def rates(databases: PostgresDatabases, workers: int, count: int, turns: int) -> dict[str, list[float]]:
    """Requests per second of each turn, the first of which warms up."""
    settings = SETTINGS | {"PLATFORM_WORKERS": str(workers)}
    with (
        tempfile.TemporaryDirectory() as directory,
        databases.migrated() as url,
        ServerProcess(Path(directory), url, settings) as server,
    ):
        tokens = [server.add_user(f"alice{number}") for number in range(ACCOUNTS)]
        me = call("/v1/me", {"Authorization": f"Bearer {tokens[0]}"})
        spans = [range(turn * count, (turn + 1) * count) for turn in range(turns + 1)]
        return {
            name: [count / send(server.base_url, messages, span, CONNECTIONS) for span in spans][1:]
            for name, messages in (("GET /v1/me", me), ("POST /v1/simulate", orders(tokens, 0)))
        }


def figures(quick: bool) -> Iterator[Figure]:
    count, turns = (32, 1) if quick else (2 * COUNT, TURNS)
    with PostgresServer(durable=True) as postgres:
        databases = PostgresDatabases(postgres)
        control = rates(databases, 1, count, turns)
        for workers in WORKERS:
            measured = control if workers == 1 else rates(databases, workers, count, turns)
            for name, values in measured.items():
                yield Figure(f"{name} a second, {workers} processes", values, control[name])
