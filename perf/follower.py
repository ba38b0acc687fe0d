"""A poll round of 10,000 unfinished requests by one process, against a batch API that answers in 20 ms.

    python perf/follower.py [--quick]

The tests' Superfacility API in a process of its own; the real runner, within the rate that
its setting allows, and the real follower, on SQLite and on PostgreSQL. A round takes from when all requests
are due until all were asked about and written back. *Held up* is the longest that the event loop, which
serves requests in a server, did nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.runners.sfapi.superfacility import Superfacility

from collidium import settings, simulations
from collidium.order import Order
from collidium.platform import Platform
from collidium.simulations import totals
from collidium.simulations.models import SimulationRequest, order_columns
from collidium.testing.databases import Databases, PostgresDatabases, SqliteDatabases
from collidium.testing.postgres import PostgresServer
from collidium_runners.batch.states import Handle

ANSWER_SECONDS = 0.02
#: Seconds between two looks at whether the round is over.
LOOK = 0.02
GOAL = 5.0


def serve(directory: Path, count: int, ask: Connection) -> None:
    """The API with that many jobs; sends its address and the jobs, then obeys: runs jobs, counts calls."""
    with Superfacility(directory) as api:
        api.answer_seconds = ANSWER_SECONDS
        jobs = [api.add_job(f"collidium-{number:032x}") for number in range(count)]
        ask.send((api.url, api.token_url, api.client_id, api.account, str(api.key_file), str(api.scratch)))
        ask.send([job.id for job in jobs])
        while (command := ask.recv()) != "end":
            if command == "run":
                with api.batch.lock:
                    for job in jobs:
                        job.tasks[0].state, job.tasks[0].began = "RUNNING", time.time()
            ask.send(len(api.calls))


@contextmanager
def batch_system(directory: Path, count: int) -> Iterator[Connection]:
    """What to talk to the process of the API by."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(directory, count, theirs), daemon=True)
    process.start()
    yield ours
    ours.send("end")
    process.join()


async def fill(jobs: list[int]) -> None:
    """A queued request of each job, all of them not due for an hour."""
    moment = datetime.now(UTC)
    rows = [
        SimulationRequest(
            request_id=f"{number:032x}",
            account_id=number % 100 + 1,
            hub_username=f"user{number % 100}",
            **order_columns(Order("ttbar", 10, 0, number)),
            pipeline_version="pipeline-v0.1.0",
            config_hash=f"{number:064x}",
            state="queued",
            created_at=moment,
            created_day=totals.day_of(moment),
            credits_charged=Decimal("0.100"),
            estimated_node_hours=Decimal("0.100"),
            node_hours=Decimal("0.100"),
            runner="sfapi",
            handle=str(Handle(job, 1, f"{number:032x}")),
            node_seconds=360,
            # As long as that of an account that signed in for a month.
            encrypted_token="x" * 200,
            step="follow",
            due_at=moment + timedelta(hours=1),
            deadline_at=moment + timedelta(days=7),
        )
        for number, job in enumerate(jobs)
    ]
    await SimulationRequest.bulk_create(rows, batch_size=500)


async def longest_hold_up(stop: asyncio.Event) -> float:
    """The longest time in which the event loop did not come to this, in seconds."""
    longest = 0.0
    while not stop.is_set():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before)
    return longest


async def round_of(platform: Platform) -> tuple[float, float, float]:
    """Wall and CPU seconds of a round in which all are due, and the longest hold-up."""
    start = datetime.now(UTC)
    await SimulationRequest.all().update(due_at=start)
    stop = asyncio.Event()
    held_up = asyncio.create_task(longest_hold_up(stop))
    wall, used = time.perf_counter(), cpu_seconds()
    async with simulations.following(platform):
        while await SimulationRequest.filter(due_at__lte=start).exists():  # noqa: ASYNC110 -- the database
            await asyncio.sleep(LOOK)
        wall, used = time.perf_counter() - wall, cpu_seconds() - used
    stop.set()
    return wall, used, await held_up


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(name: str, directory: Path, database_url: str, count: int, api: Connection) -> None:
    """Print a row for each kind of round."""
    url, token_url, client_id, account, key_file, scratch = api.recv()
    configured = settings.load(
        data_dir=directory / "data",
        database_url=database_url,
        run_mode="real",
        runner="sfapi",
        sfapi_url=url,
        sfapi_token_url=token_url,
        sfapi_client_id=client_id,
        sfapi_key_file=key_file,
        sfapi_account=account,
        sfapi_directory=scratch,
        log_level="warning",
    )
    async with Platform.open(configured) as platform:
        await fill(api.recv())
        # The first asks for a token, and imports what that needs.
        for kind in ("the first", "nothing new", "all begin to run", "nothing new"):
            before = asked(api, "run" if kind == "all begin to run" else "calls")
            wall, used, held_up = await round_of(platform)
            calls = asked(api, "calls") - before
            print(f"| {name} | {kind} | {wall:.2f} | {used:.2f} | {calls} | {held_up * 1000:.0f} |")
        assert await SimulationRequest.filter(state="running", lease="").count() == count


def asked(api: Connection, command: str) -> int:
    """How many calls there were, after the command."""
    api.send(command)
    calls: int = api.recv()
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    count = 300 if parser.parse_args().quick else 10_000
    with tempfile.TemporaryDirectory() as directory, PostgresServer() as postgres:
        top = Path(directory)
        top.joinpath("sqlite").mkdir()
        kinds: dict[str, Databases] = {
            "SQLite": SqliteDatabases(top / "sqlite"),
            "PostgreSQL": PostgresDatabases(postgres),
        }
        print(f"| | {count:,} requests | round (s) | CPU (s) | calls of the API | held up (ms) |")
        print("|---|---|---:|---:|---:|---:|")
        for name, databases in kinds.items():
            here = top / name
            with databases.migrated() as url, batch_system(here / "nersc", count) as api:
                asyncio.run(measure(name, here, url, count, api))


if __name__ == "__main__":
    main()
