"""What the platform adds to onnxruntime, and how well the speed of a model is measured.

    python perf/model_timing.py [--events 10000] [--repeats 30] [--quick]

The model is the example `deepsets` of jets; events are the packaged ones of jets, repeated. A pass of the
platform is from inputs in memory to predictions as a table: batches, the sandbox, its answers, checks. That
of onnxruntime alone has the same arrays and options, on the same core. What the platform computes for
models, the features, is given apart. The busy neighbour is a process that computes on the other core.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from statistics import median, stdev

import numpy as np
import onnxruntime
import pyarrow as pa

from collidium.contracts.task import EventRange, Tables
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.inference.batching import Inputs, Outputs
from collidium.inference.codes import Code, ModelRefused
from collidium.inference.manifest import interface_of, read_manifest
from collidium.inference.running import Model, open_model, run_batches
from collidium.inference.timing import time_block
from collidium.testing.processes import ending_with_parent
from collidium_tasks.jets import JetsTask

TASK = JetsTask()
#: A measurement that the machine was too busy for is repeated, so often.
ATTEMPTS = 20
SPIN = "import numpy as np; x = np.ones((500, 500))\nwhile True: x = x @ x / 500"


def example() -> Model:
    files = TASK.model_examples()["deepsets"]()
    return Model(files["model.onnx"], read_manifest(files["manifest.toml"], TASK))


def events(count: int) -> Tables:
    """The packaged events, repeated, each with an id of its own."""
    ((_, tables),) = Dataset(EVENTS_DIRECTORY.parent / "jets").read(("jets", "tracks"), EventRange(0, 40))
    repeats = -(-count // 40)
    ids = pa.array(np.arange(count, dtype=np.uint32))
    return {
        name: pa.concat_tables([table] * repeats)
        .slice(0, count)
        .combine_chunks()
        .set_column(0, "event_id", ids)
        for name, table in tables.items()
    }


def overhead(model: Model, count: int, repeats: int) -> None:
    tables = events(count)
    began = time.perf_counter()
    inputs = Inputs(model.manifest, interface_of(TASK), tables)
    features = time.perf_counter() - began
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})  # both on the same one
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    alone = onnxruntime.InferenceSession(model.content, options, ["CPUExecutionProvider"])
    names = list(model.manifest.inputs)
    own, platforms = [], []
    with open_model(model, TASK, core=core) as sandbox:
        for _ in range(repeats + 1):
            began = time.perf_counter()
            for _, batch in inputs.batches():
                alone.run(list(model.manifest.outputs), dict(zip(names, batch.arrays, strict=True)))
            own.append(time.perf_counter() - began)
            began = time.perf_counter()
            outcomes = list(run_batches(sandbox, (batch for _, batch in inputs.batches())))
            outputs = Outputs(inputs, model.manifest, interface_of(TASK), TASK.card, {})
            rows = outputs.table(tables, [outcome.outputs for outcome in outcomes]).num_rows
            platforms.append(time.perf_counter() - began)
    ratios = [one / other for one, other in zip(platforms[1:], own[1:], strict=True)]
    print(
        f"{count} events, {rows} jets: onnxruntime {median(own[1:]):.3f} s, platform "
        f"{median(platforms[1:]):.3f} s, median of ratios {median(ratios):.3f} ({min(ratios):.3f} to "
        f"{max(ratios):.3f}); features {features:.1f} s"
    )
    os.sched_setaffinity(0, range(os.cpu_count() or 1))


@contextmanager
def neighbour() -> Iterator[None]:
    """A process that computes on another core than the measurement's."""
    cores = sorted(os.sched_getaffinity(0) - {max(os.sched_getaffinity(0))}) or [0]
    words = ["taskset", "-c", str(cores[0]), sys.executable, "-c", SPIN]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(ending_with_parent(words), env=environment) as process:
        try:
            yield
        finally:
            process.kill()


def speed(model: Model, count: int, repeats: int, *, busy: bool) -> None:
    tables = events(count)
    found, refused = [], 0
    with neighbour() if busy else nullcontext():
        for _ in range(ATTEMPTS * repeats):
            try:
                found.append(float(np.mean(time_block(model, TASK, tables).seconds)))
            except ModelRefused as error:
                if error.code not in (Code.NOISY, Code.HIDDEN_WORK):
                    raise
                refused += 1
            if len(found) == repeats:
                break
    where = "next to a busy neighbour" if busy else "alone"
    if len(found) < 2:
        print(f"speed {where}: {len(found)} measured, {refused} refused as noisy")
        return
    print(
        f"speed {where}: median {median(found):.3g} s of {len(found)}, variation "
        f"{stdev(found) / (sum(found) / len(found)):.1%}, {refused} refused as noisy"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    count, repeats = (200, 2) if given.quick else (given.events, given.repeats)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    model = example()
    overhead(model, count, min(repeats, 10))
    for busy in (False, True):
        speed(model, 100 if not given.quick else 10, repeats, busy=busy)


if __name__ == "__main__":
    main()
