"""CPU per request of the server's hot paths (`python -m perf api`), and its health while it scores.

    python perf/api.py [--quick]

One server process on loopback, on SQLite and on PostgreSQL. The first table of each sends submissions of five
million hits, the first of them to a server that has done nothing yet, and asks for /healthz all the while;
its last column is without what server and client waited for a core, which others may use. The second has
leaderboards of 10,000 and 100,000 places, the third (alone: ``--board``) what the board of a challenge with
10,000 participants costs after each submission.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import httpx
import leaderboard_seed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import Figure, Target, by_turns, call, cpu_seconds, on_both_databases

from collidium.testing.databases import PostgresDatabases
from collidium.testing.postgres import PostgresServer
from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask

#: Submissions during which /healthz is asked for, after the first.
WARM_SUBMISSIONS = 5


def waited_for_core(pid: int) -> float:
    """Seconds that the process's first thread was ready to run and had no core."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9


def publish_truth(server: ServerProcess, directory: Path, hits: int, events: int) -> pa.Table:
    """Synthetic events as a dataset directory, imported as truth; returns predictions of all hits."""
    rng = np.random.default_rng(1)
    per_event = hits // events
    particles = max(per_event // 10, 1)
    for table, columns in {
        "tracker_hits": {
            "hit_id": (pa.uint32(), lambda: np.arange(per_event)),
            **{axis: (pa.float32(), lambda: rng.normal(0, 500, per_event)) for axis in "xyz"},
            "particle_id": (pa.uint64(), lambda: rng.integers(0, particles, per_event)),
        },
        "particles": {
            "particle_id": (pa.uint64(), lambda: np.arange(1, particles)),
            "pt": (pa.float32(), lambda: rng.exponential(1.0, particles - 1)),
        },
    }.items():
        data: dict[str, pa.Array] = {"event_id": pa.array(range(events), pa.uint32())}
        for name, (kind, make) in columns.items():
            data[name] = pa.array([make() for _ in range(events)], pa.list_(kind))
        pq.write_table(pa.table(data), directory / f"{table}.parquet", row_group_size=1)
    done = server.run("truth", "import", "tracking", "--from", str(directory), "--events", f"0:{events}")
    assert done.returncode == 0, done.stderr
    return pa.table(
        {
            "event_id": np.repeat(np.arange(events, dtype=np.int32), per_event),
            "hit_id": np.tile(np.arange(per_event, dtype=np.int32), events),
            "track_id": rng.integers(-1, particles, per_event * events).astype(np.int32),
        }
    )


class Delay(NamedTuple):
    """Seconds of a call: in all, and but for waiting for a core."""

    total: float
    own: float


def delays_while_scoring(server: ServerProcess, token: str, predictions: Path) -> list[Delay]:
    """Each call of /healthz while another process submits the predictions."""
    command = [sys.executable, "-m", "collidium", "submit", "tracking", str(predictions), "--json"]
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url, "HF_TOKEN": token}
    delays = []
    with httpx.Client(base_url=server.base_url, trust_env=False) as client:
        assert client.get("/healthz").status_code == 200  # to connect is no part of what is measured
        upload = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        while upload.poll() is None:
            delays.append(delay_of_call(client, server.pid))
    assert upload.returncode == 0
    return delays


def delay_of_call(client: httpx.Client, server: int) -> Delay:
    waited = waited_for_core(server) + waited_for_core(os.getpid())
    started = time.perf_counter()
    assert client.get("/healthz").status_code == 200
    total = time.perf_counter() - started
    return Delay(total, total - (waited_for_core(server) + waited_for_core(os.getpid()) - waited))


def health(server: ServerProcess, token: str, predictions: pa.Table, directory: Path) -> None:
    """Print the delays while a first submission is scored, which starts workers and more, and later ones."""
    print(
        f"| /healthz while {predictions.num_rows:,} hits are scored | calls | median (ms) | largest | own |"
    )
    print("|---|---:|---:|---:|---:|")
    submissions = []
    for number in range(1 + WARM_SUBMISSIONS):
        path = directory / f"predictions_{number}.parquet"
        # A file that was sent before would not be scored again.
        pq.write_table(predictions.replace_schema_metadata({"number": str(number)}), path)
        submissions.append(delays_while_scoring(server, token, path))
    warm = [delay for delays in submissions[1:] for delay in delays]
    for name, delays in ("first of a new server", submissions[0]), (f"{WARM_SUBMISSIONS} more", warm):
        totals = [delay.total * 1000 for delay in delays]
        own = max(delay.own for delay in delays) * 1000
        median, largest = statistics.median(totals), max(totals)
        print(f"| {name} | {len(delays):,} | {median:.1f} | {largest:.1f} | {own:.1f} |")


def leaderboards(server: ServerProcess, database_url: str, sizes: tuple[int, ...]) -> None:
    """Print how long long leaderboards take, alone: what was not asked for before, and the same again."""
    print("\n| places | call | first (ms) | again |\n|---:|---|---:|---:|")
    board = "/v1/leaderboard/tracking"
    metrics = [metric.name for metric in TrackingTask.card.metrics]
    with httpx.Client(base_url=server.base_url, trust_env=False, timeout=60) as client:
        total = 0
        for size in sizes:
            asyncio.run(leaderboard_seed.fill(database_url, size - total))
            total = size
            for label, paths in (
                ("first page of 100", [f"{board}?limit=100"]),
                ("places of one account", [f"{board}?hub_username=user-{number}" for number in range(20)]),
                ("history of a metric", [f"{board}/history?metric={name}" for name in metrics]),
                ("the page", ["/leaderboard/tracking"]),
                ("the page of one account", [f"/leaderboard/tracking?user=user-{n}" for n in range(20, 40)]),
            ):
                first, again = (
                    statistics.median(milliseconds(client, path) for path in paths) for _ in range(2)
                )
                print(f"| {size:,} | {label} | {first:.0f} | {again:.0f} |")


def participants(server: ServerProcess, database_url: str, count: int, rounds: int) -> None:
    """Print what the board of a challenge with so many participants costs after each submission."""
    board = "/v1/leaderboard/tracking?limit"
    pages = {
        "the API, 100 places": f"{board}=100",
        "the API, 1,000 places": f"{board}=1000",
        "the page": "/leaderboard/tracking",
    }
    made: dict[str, list[float]] = {name: [] for name in pages}
    kept: dict[str, list[float]] = {name: [] for name in pages}
    intervals = []
    asyncio.run(leaderboard_seed.fill(database_url, count - rounds))
    with httpx.Client(base_url=server.base_url, trust_env=False, timeout=60) as client:
        rules, admin = {"rules": "*One* model a team."}, {"X-Admin-Token": server.admin_token}
        client.patch("/admin/challenges/tracking", json=rules, headers=admin).raise_for_status()
        for _ in range(rounds):
            asyncio.run(leaderboard_seed.fill(database_url, 1))
            started = time.perf_counter()
            while client.get(f"{board}=1").json()[0]["rank_low"] is None:
                time.sleep(0.05)
            intervals.append(time.perf_counter() - started)
            for name, path in pages.items():
                made[name].append(cpu_of_call(client, server.pid, path))
                kept[name].append(cpu_of_call(client, server.pid, path))
    print(f"\n| board of {count:,} participants | CPU (ms), made: least | median | largest | kept: median |")
    print("|---|---:|---:|---:|---:|")
    for name in pages:
        cost, cached = statistics.median(made[name]), statistics.median(kept[name])
        print(f"| {name} | {min(made[name]):.0f} | {cost:.0f} | {max(made[name]):.0f} | {cached:.1f} |")
    print(f"\nIntervals: {statistics.median(intervals):.2f} s in the median, {max(intervals):.2f} s at most.")


def cpu_of_call(client: httpx.Client, server: int, path: str) -> float:
    """Milliseconds of CPU of the server's threads."""
    before = cpu_seconds(server)
    assert client.get(path).status_code == 200, path
    return (cpu_seconds(server) - before) * 1000


def milliseconds(client: httpx.Client, path: str) -> float:
    started = time.perf_counter()
    assert client.get(path).status_code == 200, path
    return (time.perf_counter() - started) * 1000


def measure(database_url: str | None, quick: bool) -> None:
    hits, events = (200_000, 4) if quick else (5_000_000, 40)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with ServerProcess(directory / "server", database_url, {"PLATFORM_LOG_LEVEL": "warning"}) as server:
            token = server.add_user("alice")
            predictions = publish_truth(server, directory, hits, events)
            health(server, token, predictions, directory)
            url = database_url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"
            leaderboards(server, url, (200, 400) if quick else (10_000, 100_000))


def measure_board(database_url: str | None, quick: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with ServerProcess(directory / "server", database_url, {"PLATFORM_LOG_LEVEL": "warning"}) as server:
            publish_truth(server, directory, hits=2000, events=2)
            url = database_url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"
            participants(server, url, *((200, 2) if quick else (10_000, 10)))


def hot_paths(kind: str, directory: Path, database_url: str | None, quick: bool) -> Iterator[Figure]:
    settings = {"PLATFORM_LOG_LEVEL": "warning", "PLATFORM_FOLLOW_REQUESTS": "false"}
    with ServerProcess(directory / "server", database_url, settings) as server:
        token = {"Authorization": f"Bearer {server.add_user('alice')}"}
        publish_truth(server, directory, hits=2000, events=2)
        asyncio.run(
            leaderboard_seed.fill(database_url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}", 1000)
        )
        order = {"channel": "ttbar", "events": 1, "pileup": 0}
        ordered = httpx.post(f"{server.base_url}/v1/simulate", json=order, headers=token, trust_env=False)
        paths = {
            "GET /healthz": call("/healthz"),
            "GET /v1/me": call("/v1/me", token),
            "GET /v1/requests/{id}": call(f"/v1/requests/{ordered.json()['request_id']}", token),
            "GET /v1/leaderboard/tracking, 100 ranks": call("/v1/leaderboard/tracking?limit=100"),
            "GET /v1/leaderboard/jets, without truth": call("/v1/leaderboard/jets"),
        }
        calls = {f"{name}, {kind}": messages for name, messages in paths.items()}
        yield from by_turns(Target(server.base_url, server.pid), calls, quick)


def figures(quick: bool) -> Iterator[Figure]:
    return on_both_databases(hot_paths, quick)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    parser.add_argument("--board", action="store_true", help="only the board of 10,000 participants")
    given = parser.parse_args()
    gc.disable()  # a pause of this process would count as the server's
    parts = (measure_board,) if given.board else (measure, measure_board)
    with PostgresServer() as postgres:
        databases = PostgresDatabases(postgres)
        for kind in ("SQLite", "PostgreSQL"):
            print(f"\n{kind}\n")
            for part in parts:
                with databases.migrated() if kind == "PostgreSQL" else nullcontext() as url:
                    part(url, given.quick)


if __name__ == "__main__":
    main()
