"""Downloading from the local hub against plain parallel copies, and loading against pyarrow alone.

    python perf/datasets.py            200 shards of 5 MB, 1000 events of several sizes
    python perf/datasets.py --quick    a smoke: 8 shards, 40 events

Everything is compared within one run, in turn; ratios are of medians. A plain copy asks for the same files
over as many connections and writes them, with no checks: by curl, and by threads with httpx. The hub is a
server process of its own on the same two cores; CPU is that of the copying process. pyarrow reads the same
columns of the same row groups.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium import datasets
from collidium.datasets.writing import write_dataset
from collidium.hub import client as hub_client
from collidium.testing.server import ServerProcess

CONNECTIONS = 8
SHARD_BYTES = 5_000_000
CONFIG = "ttbar_pu0"
COLUMNS = ["x", "y", "z", "particle_id"]


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def cpu_seconds() -> float:
    """User and system time of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


# -- download ----------------------------------------------------------------------------------------------


@contextmanager
def published(directory: Path, shards: int) -> Iterator[tuple[str, str, list[str]]]:
    """A server with a repository of shards that hold random bytes: its hub, the repository, the paths."""
    hub_client.prepare()
    from huggingface_hub import CommitOperationAdd, HfApi

    with ServerProcess(directory / "server") as server:
        api = HfApi(endpoint=f"{server.base_url}/hub", token=server.add_user("perf"))
        api.create_repo("perf/shards", repo_type="dataset")
        folder = directory / "shards"
        folder.mkdir()
        rng = np.random.default_rng(5)
        operations = []
        for number in range(shards):
            path = folder / f"train-{number:05}-of-{shards:05}.parquet"
            path.write_bytes(rng.bytes(SHARD_BYTES))
            operations.append(CommitOperationAdd(f"data/{CONFIG}_tracker_hits/{path.name}", path))
        api.create_commit("perf/shards", operations, repo_type="dataset", commit_message="Shards")
        yield f"{server.base_url}/hub", "perf/shards", [operation.path_in_repo for operation in operations]


def copy_by_curl(endpoint: str, repo: str, paths: list[str], to: Path) -> None:
    address = f"{endpoint}/datasets/{repo}/resolve/main/"
    lines = [f'url = "{address}{path}"\noutput = "{to / Path(path).name}"' for path in paths]
    command = [
        "curl",
        "-sS",
        "--no-progress-meter",
        "--fail",
        "--noproxy",
        "*",
        "-Z",
        "--parallel-max",
        str(CONNECTIONS),
        "-K",
        "-",
    ]
    subprocess.run(command, input="\n".join(lines), text=True, check=True)


def copy_by_threads(endpoint: str, repo: str, paths: list[str], to: Path) -> None:
    with httpx.Client(trust_env=False, timeout=60) as client, ThreadPoolExecutor(CONNECTIONS) as threads:

        def copy(path: str) -> None:
            with client.stream("GET", f"{endpoint}/datasets/{repo}/resolve/main/{path}") as response:
                response.raise_for_status()
                with (to / Path(path).name).open("wb") as file:
                    for piece in response.iter_raw():
                        file.write(piece)

        list(threads.map(copy, paths))


def measure_download(directory: Path, shards: int, rounds: int) -> None:
    with published(directory, shards) as (endpoint, repo, paths):

        def download(to: Path) -> None:
            datasets.download(repo, endpoint=endpoint, token="", cache=to, parallel=CONNECTIONS)

        ways: dict[str, Callable[[Path], None]] = {
            "httpx in threads": lambda to: copy_by_threads(endpoint, repo, paths, to),
            "collidium, checked and kept": download,
        }
        if shutil.which("curl"):
            ways = {"curl --parallel": lambda to: copy_by_curl(endpoint, repo, paths, to)} | ways
        times: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                with tempfile.TemporaryDirectory(dir=directory) as to:
                    before = cpu_seconds()
                    times[name].append(seconds(partial(way, Path(to))))
                    cpu[name].append(cpu_seconds() - before)
        with tempfile.TemporaryDirectory(dir=directory) as to:
            download(Path(to))
            again = seconds(partial(download, Path(to)))
    own = statistics.median(times["collidium, checked and kept"])
    size = shards * SHARD_BYTES / 1e6
    print(f"\n{shards} shards of {SHARD_BYTES / 1e6:.0f} MB over {CONNECTIONS} connections\n")
    print("| copy | s | MB/s | CPU s | collidium / this |\n|---|---:|---:|---:|---:|")
    for name, all_times in times.items():
        median, cost = statistics.median(all_times), statistics.median(cpu[name])
        print(f"| {name} | {median:.2f} | {size / median:.0f} | {cost:.2f} | {own / median:.2f} |")
    print(f"| collidium, all there already | {again:.2f} | | | |")


# -- load --------------------------------------------------------------------------------------------------


def write_events(directory: Path, events: int, hits: int, per_shard: int) -> None:
    """Tables of random hits in the hosted layout, about ``hits`` an event."""
    rng = np.random.default_rng(7)

    def block(start: int, stop: int) -> dict[str, pa.Table]:
        lengths = rng.poisson(hits, stop - start)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        count = int(offsets[-1])

        def lists(values: np.ndarray, kind: pa.DataType) -> pa.ListArray:
            return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, kind))

        floats = {
            name: lists(rng.normal(0, 500, count).astype(np.float32), pa.float32())
            for name in ("x", "y", "z", "true_x", "true_y", "true_z", "time")
        }
        ids = {
            "particle_id": lists(rng.integers(2**60, 2**60 + 2000, count), pa.uint64()),
            "volume_id": lists(rng.integers(16, 31, count), pa.uint8()),
            "layer_id": lists(rng.integers(2, 15, count), pa.uint16()),
            "surface_id": lists(rng.integers(0, 3000, count), pa.uint32()),
            "detector": lists(rng.integers(0, 6, count), pa.uint8()),
        }
        event_id = pa.array(np.arange(start, stop), pa.uint32())
        return {"tracker_hits": pa.table({"event_id": event_id, **floats, **ids})}

    step = max(1, min(per_shard, 2_000_000 // hits))
    blocks = (block(start, min(start + step, events)) for start in range(0, events, step))
    write_dataset(directory, CONFIG, blocks, events_per_shard=per_shard)


def read_by_pyarrow(directory: Path, start: int, stop: int) -> pa.Table:
    """The same columns of the row groups that hold the events."""
    tables = []
    for path in sorted((directory / f"data/{CONFIG}_tracker_hits").iterdir()):
        with pq.ParquetFile(path) as file:
            index = file.schema_arrow.names.index("event_id")
            ends = [file.metadata.row_group(n).column(index).statistics for n in range(file.num_row_groups)]
            groups = [n for n, end in enumerate(ends) if end.min < stop and end.max >= start]
            if groups:
                tables.append(file.read_row_groups(groups, columns=["event_id", *COLUMNS]))
    return pa.concat_tables(tables)


def measure_load(directory: Path, sizes: Sequence[tuple[int, int, int]], rounds: int) -> None:
    print("\n| events | hits each | shards of | collidium (ms) | pyarrow (ms) | ratio |")
    print("|---:|---:|---:|---:|---:|---:|")
    for wanted, hits, per_shard in sizes:
        with tempfile.TemporaryDirectory(dir=directory) as made:
            folder = Path(made)
            # More than is asked for, and not from the start of a shard.
            write_events(folder, wanted * 2, hits, per_shard)
            events = range(wanted // 2, wanted // 2 + wanted)
            load = partial(datasets.load, folder, CONFIG, "tracker_hits", events, columns=COLUMNS)
            read = partial(read_by_pyarrow, folder, events.start, events.stop)
            times = [(seconds(load), seconds(read)) for _ in range(rounds)]
        own, other = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
        print(f"| {wanted} | {hits} | {per_shard} | {own:.1f} | {other:.1f} | {own / other:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    quick = parser.parse_args().quick
    sizes = [(1000, 700, 1000), (1000, 700, 100), (1000, 7000, 1000), (100, 100_000, 100)]
    with tempfile.TemporaryDirectory(prefix="collidium-perf-") as made:
        directory = Path(made)
        measure_load(directory, [(40, 700, 20)] if quick else sizes, 3 if quick else 15)
        measure_download(directory, 8 if quick else 200, 1 if quick else 5)


if __name__ == "__main__":
    main()
