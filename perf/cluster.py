"""Scoring by executor `dask` against `processes`: the same file, with as many workers on this machine.

    python perf/cluster.py               200 events of 150,000 hits; 1, 2 and 4 workers
    python perf/cluster.py --events 2000 3e8 hits
    python perf/cluster.py --quick       a smoke: 8 events, one worker

Dask's scheduler and workers are processes of their own, over TLS, with one scoring process each. They fetch
predictions and truth from the storage in their first pass; the later ones find truth in their caches. The
executors take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from scoring import HITS, LIMITS, make_events, prepare, write_recommended
from scoring_calls import QuietTask

sys.path.insert(0, str(Path(__file__).parents[1]))  # a cluster on loopback is a thing of the tests
from tests.dask_cluster import running

from collidium.contracts.executor import StoredFile
from collidium.files.durable import sha256_of
from collidium.scoring.engine import evaluate
from collidium.scoring.truth.cache import stored_files
from collidium.scoring.truth.versions import Truth
from collidium_plugins.executor_dask import Dask
from collidium_plugins.executor_processes import EncodedCalls, Processes
from collidium_plugins.storage_local import LocalStorage

PASSES = 4


async def seconds(
    truth: Truth, path: Path, storage: LocalStorage, executor: EncodedCalls, number: int, sha256: str
) -> float:
    """Score once; the predictions are put into the storage first, as a server does, which has their hash."""
    start = time.perf_counter()
    files = None
    if executor.is_remote:
        size = (await asyncio.to_thread(path.stat)).st_size
        predictions = StoredFile(f"uploads/{number}.parquet", size, sha256)
        await storage.put(predictions.key, path)
        files = {path: predictions, **stored_files(truth)}
    await evaluate(QuietTask(), truth, path, executor=executor, limits=LIMITS, files=files)
    return time.perf_counter() - start


async def compare(directory: Path, truth: Truth, path: Path, workers: int, passes: int) -> None:
    storage = LocalStorage(directory / "storage")
    sha256 = sha256_of(path)
    env = {"PYTHONPATH": str(Path(__file__).parent), "PLATFORM_DATA_DIR": str(directory)}
    with running(directory / f"cluster-{workers}", workers, env) as cluster:
        dask = Dask(cluster.settings())
        executors: list[EncodedCalls] = [Processes(workers), dask]
        taken: list[list[float]] = [[], []]
        try:
            await (await dask.connected()).wait_for_workers(workers)
            for number in range(passes):
                for executor, times in zip(executors, taken, strict=True):
                    times.append(await seconds(truth, path, storage, executor, number, sha256))
        finally:
            for executor in executors:
                await executor.close()
    (first_local, *local), (first_far, *far) = taken
    best, best_far = min(local or [first_local]), min(far or [first_far])
    rate = len(truth.events) * HITS / best / 1e6
    print(
        f"| {workers} | {first_local:.2f} | {best:.2f} | {rate:.0f} | {first_far:.2f} | {best_far:.2f} "
        f"| {best_far / best:.2f} |",
        flush=True,
    )


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smoke of some seconds")
    parser.add_argument("--events", type=int, default=200)
    options = parser.parse_args()
    count = 8 if options.quick else options.events
    with tempfile.TemporaryDirectory(prefix="perf-cluster-") as name:
        directory, events = Path(name), make_events()
        truth, path = await prepare(directory, events, count), directory / "predictions.parquet"
        write_recommended(path, events, count)
        storage = LocalStorage(directory / "storage")
        for table, file in stored_files(truth).items():
            await storage.put_final(file.key, table)
        print(f"{count * HITS:,} hits; seconds of a submission by the clock\n")
        print("| workers | processes, first | then | M hits/s | dask, first | then | ratio |")
        print("|---:|---:|---:|---:|---:|---:|---:|")
        for workers in (1,) if options.quick else (1, 2, 4):
            await compare(directory, truth, path, workers, 1 if options.quick else PASSES)


if __name__ == "__main__":
    asyncio.run(main())
