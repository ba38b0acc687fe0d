"""Loaders of events against pyarrow alone, and against `datasets` and torch where they are installed.

    python perf/loaders.py            3,000 events of about 2,481 hits, four columns
    python perf/loaders.py --quick    a smoke: 60 events

All readers take turns in one run; rates are events per CPU second of the process, the median and the best of
five rounds, and ratios the median of those of each round. pyarrow alone reads the same columns of the same
row groups as Arrow tables. `datasets` gives arrays of NumPy, one for each event and column, in batches of the
same size; it decodes the same columns (``columns=``), or all twelve where they are chosen later
(``select_columns``).
Torch's workers are measured by the clock, as their CPU is in other processes, from the second epoch on.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from datasets import COLUMNS, CONFIG, write_events

from collidium.learning import Batch, EventStream

HITS = 2481
BATCH = 64
LENGTH = 2048


def pyarrow_alone(paths: list[Path]) -> int:
    total = 0
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                total += file.read_row_group(
                    group, columns=["event_id", *COLUMNS], use_threads=False
                ).num_rows
    return total


def events_in(batches: Iterable[Any], made: Callable[[Any], Any] = lambda batch: batch) -> int:
    total = 0
    for batch in batches:
        total += len(batch)
        made(batch)
    return total


def hub_library(paths: list[Path], *, shuffle: bool, later: bool = False, pad: bool = False) -> int:
    import datasets

    columns = ["event_id", *COLUMNS]
    files = list(map(str, paths))
    rows = datasets.load_dataset(
        "parquet", data_files=files, split="train", streaming=True, columns=None if later else columns
    )
    rows = rows.select_columns(columns) if later else rows
    rows = rows.shuffle(0, buffer_size=256) if shuffle else rows
    total = 0
    for batch in rows.with_format("numpy").iter(BATCH):
        total += len(batch["event_id"])
        if pad:
            [padded(batch[name]) for name in COLUMNS]
    return total


def padded(lists: Any) -> Any:
    made = np.zeros((len(lists), LENGTH), lists[0].dtype)
    for row, values in zip(made, lists, strict=True):
        row[: len(values)] = values[:LENGTH]
    return made


def grain_epoch(stream: EventStream) -> int:
    from collidium.learning.grain import EventDataset

    return sum(len(batch["event_id"]) for batch in EventDataset(stream))


def torch_epoch(stream: EventStream) -> int:
    from torch.utils.data import DataLoader

    from collidium.learning.torch import EventDataset

    return sum(len(batch["event_id"]) for batch in DataLoader(EventDataset(stream), batch_size=None))


def in_turns(readers: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[float]]:
    """Events per CPU second of each in every round."""
    rates: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            before = time.process_time()
            rates[name].append(read() / (time.process_time() - before))
    return rates


def memory() -> float:
    """The most that this process had in memory, MiB."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


def torch_epochs(stream: EventStream, workers: int, epochs: int) -> tuple[list[float], float]:
    """Seconds of each epoch by the clock, and those of CPU of all, of workers as well."""
    from torch.utils.data import DataLoader

    from collidium.learning.torch import EventDataset

    loader = DataLoader(
        EventDataset(stream), batch_size=None, num_workers=workers, persistent_workers=workers > 0
    )
    seconds, before = [], sum(os.times()[:4])
    for _ in range(epochs):
        started = time.perf_counter()
        total = sum(len(batch["event_id"]) for batch in loader)
        seconds.append(time.perf_counter() - started)
        assert total == len(stream) * BATCH or total > (len(stream) - 1) * BATCH
    del loader  # ends the workers, which then count
    return seconds, sum(os.times()[:4]) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=3000)
    options = parser.parse_args()
    # The script perf/datasets.py hides the library of that name.
    sys.modules.pop("datasets")
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).parent]
    events, rounds = (60, 1) if options.quick else (options.events, 5)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        # In another process, as memory is measured in this one.
        writing = get_context("fork").Process(target=write_events, args=(directory, events, HITS, 1000))
        writing.start()
        writing.join()
        paths = sorted(directory.rglob("*.parquet"))

        def stream(shuffle: bool) -> EventStream:
            return EventStream(
                directory, CONFIG, "tracker_hits", COLUMNS, batch=BATCH, shuffle=shuffle, seed=1
            )

        def rectangles(batch: Batch) -> Any:
            return batch.padded(LENGTH)

        readers: dict[str, Callable[[], int]] = {"pyarrow alone": partial(pyarrow_alone, paths)}
        for shuffle, made in itertools.product((False, True), (None, rectangles)):
            form = f"padded to {LENGTH}" if made else "ragged"
            title = f"collidium, {form}, {'shuffled' if shuffle else 'in order'}"
            held = stream(shuffle)
            len(held)  # the footers, which a stream reads once
            readers[title] = partial(events_in, held, *([made] if made else []))
        if find_spec("jax"):
            readers["collidium to JAX, shuffled"] = partial(
                events_in,
                EventStream(directory, CONFIG, "tracker_hits", COLUMNS[:3], batch=BATCH, shuffle=True),
                Batch.to_jax,
            )
        if find_spec("torch"):
            readers["torch, no workers, shuffled"] = partial(torch_epoch, stream(True))
        if find_spec("grain"):
            readers["grain, shuffled"] = partial(grain_epoch, stream(True))
        if find_spec("datasets"):
            kinds: dict[str, dict[str, bool]] = {
                "ragged": {},
                f"padded to {LENGTH}": {"pad": True},
                "ragged, `select_columns`": {"later": True},
            }
            for shuffle, (kind, chosen) in itertools.product((False, True), kinds.items()):
                title = f"`datasets` streaming, {kind}, {'shuffled' if shuffle else 'in order'}"
                readers[title] = partial(hub_library, paths, shuffle=shuffle, **chosen)
        before = memory()
        readers["collidium, ragged, shuffled"]()
        print(f"An epoch, ragged and shuffled, adds {memory() - before:.0f} MiB to the process at most.\n")
        rates = in_turns(readers, rounds)
        base = rates["pyarrow alone"]
        print("| reader | events / CPU s, median | best | of pyarrow alone |\n|---|---:|---:|---:|")
        for title, own in rates.items():
            ratio = statistics.median(one / other for one, other in zip(own, base, strict=True))
            print(f"| {title} | {statistics.median(own):,.0f} | {max(own):,.0f} | {ratio:.2f} |")
        for library in ("jax", "datasets", "grain", "torch"):
            if not find_spec(library):
                print(f"{library}: not installed, not run")
        if not find_spec("torch"):
            return
        for shuffle, workers in itertools.product((False, True), (0, 2)):
            later = 1 if options.quick else 9
            _, before_cpu = torch_epochs(stream(shuffle), workers, 1)
            (first, *others), cpu = torch_epochs(stream(shuffle), workers, 1 + later)
            after = f"then {min(others):.2f} s at best, {statistics.median(others):.2f} s in the middle"
            each = (cpu - before_cpu) / later
            order = "shuffled" if shuffle else "in order"
            print(f"torch, {workers} workers, {order}: {first:.2f} s, {after}; {each:.2f} s of CPU an epoch")


if __name__ == "__main__":
    main()
