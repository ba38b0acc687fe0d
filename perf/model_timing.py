"""What the platform adds to onnxruntime, and how well the speed of a model is measured.

    python perf/model_timing.py [--events 10000] [--repeats 30] [--quick]

The model is the example `deepsets` of jets; events are the packaged ones of jets, repeated. A pass of the
platform is from inputs in memory to predictions as a table: batches, the sandbox, its answers, checks. That
of onnxruntime alone has the same arrays and options, on the same core. What the platform computes for
models, the features, is given apart. The busy neighbour is a process that computes on the other core.

Each figure has its goal. What is printed as `reference` is what NOMINAL_SECONDS of
`collidium.inference.timing` is set by. Loads are of a minute: an idle machine shows less than 0.5 at first.
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
from pathlib import Path
from statistics import median, stdev

import numpy as np
import onnxruntime
import pyarrow as pa

from collidium.contracts.task import EventRange, Tables
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.inference.batching import Inputs, Outputs
from collidium.inference.manifest import interface_of, read_manifest
from collidium.inference.messages import Code, ModelRefused
from collidium.inference.running import Model, open_model, run_batches
from collidium.inference.timing import NOMINAL_SECONDS, time_block
from collidium.testing.processes import ending_with_parent
from collidium_tasks.jets import JetsTask

TASK = JetsTask()
#: Goals: platform over onnxruntime, coefficient of variation, and how far a busy neighbour moves the median.
OVERHEAD, VARIATION, MOVED = 1.15, 0.03, 0.15
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
        f"{median(platforms[1:]):.3f} s, ratios {min(ratios):.3f} to {max(ratios):.3f}; "
        f"features {features:.1f} s"
    )
    print(f"overhead over onnxruntime: {_against(median(ratios), OVERHEAD)}, {load()}", flush=True)
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


def speed(model: Model, count: int, repeats: int, *, busy: bool) -> float | None:
    """Time blocks and print how they scatter; returns their median, None where too few could be measured."""
    tables = events(count)
    found, refused = [], 0
    references = []
    with neighbour() if busy else nullcontext():
        for _ in range(ATTEMPTS * repeats):
            try:
                block = time_block(model, TASK, tables)
                found.append(float(np.mean(block.seconds)))
                references.append(block.reference_seconds)
            except ModelRefused as error:
                if error.code not in (Code.NOISY, Code.HIDDEN_WORK):
                    raise
                refused += 1
            if len(found) == repeats:
                break
    where = "next to a busy neighbour" if busy else "alone"
    if len(found) < 2:
        print(f"speed {where}: {len(found)} measured, {refused} refused as noisy, {load()}")
        return None
    print(
        f"speed {where}: median {median(found):.3g} s of {len(found)}, {refused} refused as noisy; reference "
        f"{median(references):.3g} s, nominal {NOMINAL_SECONDS:.3g} s; {load()}"
    )
    print(f"variation {where}: {_against(stdev(found) / (sum(found) / len(found)), VARIATION)}", flush=True)
    return median(found)


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def machine() -> str:
    """Its processor as the kernel names it."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = names[0].partition(": ")[2] if names else platform.machine()
    versions = f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__}"
    return f"{name}, {os.cpu_count()} cores, {versions}"


def _against(value: float, goal: float) -> str:
    return f"{value:.3f} (goal {goal:g}: {'met' if value <= goal else 'missed'})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    count, repeats = (200, 2) if given.quick else (given.events, given.repeats)
    print(f"{machine()}, {load()}", flush=True)
    model = example()
    overhead(model, count, repeats)
    alone, next_to_one = (
        speed(model, 10 if given.quick else 100, repeats, busy=busy) for busy in (False, True)
    )
    if alone and next_to_one:
        print(f"moved next to a busy neighbour by: {_against(abs(next_to_one / alone - 1), MOVED)}")


if __name__ == "__main__":
    main()
