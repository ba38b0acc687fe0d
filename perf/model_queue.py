"""What a queue of models costs a server that looks at it, and how long a large model takes.

    python perf/model_queue.py [--queued 1000] [--events 1000]

A check takes the next of the evaluations that are queued, of ten accounts in ten challenges. The large model
is an MLP of 20 MB on the packaged events of jets, repeated: it is checked and run in sandboxes, untimed.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import numpy as np
from model_timing import TASK, events, load
from tortoise.timezone import now

from collidium.database import connected
from collidium.inference.manifest import read_manifest
from collidium.inference.running import Model, check, predict
from collidium.model_runs import model_queue
from collidium.model_runs.models import Evaluation
from collidium.testing.databases import Databases, PostgresDatabases, SqliteDatabases
from collidium.testing.postgres import PostgresServer
from collidium_tasks.jets import deepsets
from collidium_tasks.networks import graph

#: Goals: CPU of a check, and seconds for the large model.
CHECK_MS, LARGE_SECONDS = 5.0, 60.0
CHECKS = 100
#: Of the large model's hidden layers.
WIDTH = 2150


async def checks(url: str, count: int) -> float:
    """Milliseconds of this process's CPU for a check, the median."""
    moment = now() - timedelta(minutes=1)
    empty = dict.fromkeys(("hub_username", "sha256", "manifest"), "") | {"participant": "account:1"}
    versions = {"scorer_version": "", "truth_version": "", "task": "jets"}
    async with connected(url):
        await Evaluation.bulk_create(
            Evaluation(
                id=f"{number:032x}",
                challenge=f"c{number % 10}",
                account_id=number // 10 % 10,
                size_bytes=0,
                events=1,
                turn=number // 100,
                received_at=moment + timedelta(milliseconds=number),
                due_at=moment,
                **empty,
                **versions,
            )
            for number in range(count)
        )
        turns: dict[str, int] = {}
        taken = []
        for turn in range(1, min(CHECKS, count) + 1):
            began = time.process_time()
            row = await model_queue.claim(turns, 60)
            taken.append(time.process_time() - began)
            assert row is not None
            turns[row.challenge] = turn
    return 1000 * median(taken)


def large(count: int) -> tuple[int, float]:
    """Bytes of the model, and seconds to check and run it."""
    chance = np.random.default_rng(1)
    size = deepsets.TRACKS * (deepsets.QUANTITIES + 1)
    shapes = {"first": (size, WIDTH), "second": (WIDTH, WIDTH), "third": (WIDTH, 3)}
    made = graph(
        f"""large (float[N, {deepsets.TRACKS}, {deepsets.QUANTITIES + 1}] tracks) => (float[N, 3] p) {{
            flat = Reshape(tracks, shape) a = MatMul(flat, first) b = Relu(a) c = MatMul(b, second)
            d = Relu(c) e = MatMul(d, third) p = Softmax <axis = 1> (e) }}""",
        shape=np.array([-1, size]),
        **{name: (chance.normal(size=of) / of[0]).astype(np.float32) for name, of in shapes.items()},
    )
    manifest = TASK.model_examples()["deepsets"]()["manifest.toml"].decode()
    model = Model(made, read_manifest(manifest.replace("probabilities =", "p =").encode(), TASK))
    tables = events(count)
    began = time.perf_counter()
    check(model, TASK)
    list(predict(model, TASK, [tables]))
    return len(made), time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queued", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, PostgresServer() as server:
        kinds: dict[str, Databases] = {
            "SQLite": SqliteDatabases(Path(directory)),
            "PostgreSQL": PostgresDatabases(server),
        }
        for name, databases in kinds.items():
            with databases.migrated() as url:
                cpu = asyncio.run(checks(url, chosen.queued))
            print(
                f"{name}, {chosen.queued} queued: {cpu:.2f} ms of CPU a check (goal {CHECK_MS:g}), {load()}"
            )
    size, seconds = large(chosen.events)
    print(f"{size / 1e6:.1f} MB, {chosen.events} events: {seconds:.1f} s (goal {LARGE_SECONDS:g}), {load()}")


if __name__ == "__main__":
    main()
