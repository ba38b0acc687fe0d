"""Predictions of models with every layout, rejected outputs, sizes and the sandbox."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs
from tests.core.inference.toy_models import JETS, events, example, manifest, model, task
from tests.needs import Needs

import collidium
from collidium.contracts.tables import nested
from collidium.contracts.task import EventRange, Tables
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset
from collidium.inference.batching import Inputs
from collidium.inference.manifest import interface_of, read_manifest
from collidium.inference.messages import Code, ModelRefused
from collidium.inference.running import Model, check, count, open_model, predict, write_predictions
from collidium.inference.sandbox import SandboxLimits, confinement

PT = 'pt = { source = "jets.pt", dtype = "float32", unit = "GeV" }'
D0 = 'd0 = { source = "tracks.d0", dtype = "float64", unit = "mm" }'
THREE = "p = Concat <axis = 1> (q, q, q)"


def predictions(made: Model, tables: Tables) -> pa.Table:
    (table,) = predict(made, task(made.manifest.task), [tables])
    return table


# -- scores of example models are those of their baselines -------------------------------------------------


@pytest.mark.parametrize(
    ("name", "which", "baseline", "directory"),
    [
        ("jets", "trees", "trees", "jets"),
        ("jets", "deepsets", "deepsets", "jets"),
        ("anomaly", "mixture", "mixture", "anomaly"),
        ("anomaly", "weak", "weak", "anomaly"),
        ("tracking", "labels", "naive", "odd-ttbar-pu0"),
        ("tracking", "edges", "naive", "odd-ttbar-pu0"),
    ],
)
def test_scores_equal_those_of_the_baseline(
    name: str, which: str, baseline: str, directory: str, tmp_path: Path
) -> None:
    of = task(name)
    made = example(name, which)
    place = EVENTS_DIRECTORY.parent / directory
    dataset = Dataset(place)
    ids = dataset.table(of.card.inputs[0]).event_ids
    wanted = EventRange(int(ids[0]), int(ids[-1]) + 1)
    rows = write_predictions(made, of, dataset, wanted, tmp_path / "model.parquet")
    own = pa.concat_tables(
        of.baselines()[baseline](tables) for _, tables in dataset.read(of.card.inputs, wanted)
    )
    assert rows == own.num_rows
    scored = collidium.score(of, tmp_path / "model.parquet", truth_from=place, events=str(wanted))
    expected = collidium.score(of, own, truth_from=place, events=str(wanted))
    assert scored.scores == pytest.approx(expected.scores, abs=1e-6, rel=1e-6)


def test_the_platform_fills_measured_columns() -> None:
    small = example("tracking_small", "labels")
    tables = events(small, EVENTS_DIRECTORY, last=2)
    counted = check(small, task("tracking_small")).n_params
    assert set(predictions(small, tables)["n_params"].to_pylist()) == {counted}
    times = predictions(example("tracking_latency", "labels"), tables).group_by("event_id")
    seconds = times.aggregate([("seconds", "min"), ("seconds", "max")])
    assert seconds["seconds_min"] == seconds["seconds_max"]
    assert all(0 < value < 60 for value in seconds["seconds_min"].to_pylist())


# -- layouts ----------------------------------------------------------------------------------------------


def toy_tables() -> dict[str, pa.Table]:
    """Three events: of no jet and two tracks, of one jet and none, of two jets and three."""
    jets, tracks = np.array([0, 1, 2]), np.array([2, 0, 3])
    ids = pa.array([5, 6, 9], pa.uint32())
    constituents = pa.array([[], [[7, 8]], [[], [9]]], pa.list_(pa.list_(pa.uint32())))
    one = np.arange(3, dtype=np.float32)
    return {
        "jets": pa.table(
            {"event_id": ids, "jet_id": nested(jets, np.array([4, 0, 1])), "constituents": constituents}
            | {"pt": nested(jets, one)}
        ),
        "tracks": pa.table({"event_id": ids, "d0": nested(tracks, np.arange(5) / 8)}),
    }


SUM = "axis = Constant <value = int64[1] {1}> ()"
#: Layout -> inputs, and operators that make of them ``r``, one number for each jet.
LAYOUTS = {
    "flat": (
        'pt = { source = "jets.pt", dtype = "float32", unit = "GeV" }',
        "float[N] pt",
        "r = Identity(pt)",
    ),
    "row_splits": (
        f'{PT}\ns = {{ source = "jets.constituents", dtype = "int64", layout = "row_splits" }}',
        "float[N] pt, int64[M] s",
        "a = Slice(s, i0, im) b = Slice(s, i1, far) n = Sub(b, a) r = Cast <to = 1> (n)",
    ),
    "segment": (
        's = { source = "jets", dtype = "int64", layout = "segment" }',
        "int64[N] s",
        "r = Cast <to = 1> (s)",
    ),
    "padded": (
        'c = { source = "jets.constituents", dtype = "float32", layout = "padded:1" }\n'
        'm = { source = "jets.constituents", dtype = "bool", layout = "mask:3" }',
        "float[N, 1] c, bool[N, 3] m",
        "k = Cast <to = 1> (m) n = ReduceSum <keepdims = 0> (k, axis) f = ReduceSum <keepdims = 0> (c, axis) "
        "g = Mul(f, ten) r = Add(n, g)",
    ),
}
EXPECTED = {"flat": [0, 1, 2], "row_splits": [2, 0, 1], "segment": [1, 2, 2], "padded": [72, 0, 91]}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_as_described(layout: str) -> None:
    inputs, declared, operators = LAYOUTS[layout]
    made = model(
        inputs,
        f"toy ({declared}) => (float[N, 3] p) {{ {SUM} {operators} "
        "v = Div(r, hundred) q = Unsqueeze(v, axis) " + THREE + " }",
        hundred=np.float32(100),
        ten=np.float32(10),
        i0=[0],
        i1=[1],
        im=[-1],
        far=[2**40],
    )
    table = predictions(made, toy_tables())
    assert table["event_id"].to_pylist() == [6, 9, 9]
    assert table["jet_id"].to_pylist() == [4, 0, 1]
    assert (np.asarray(table["prob_c"]) * 100).round(3).tolist() == EXPECTED[layout]


def test_batch_size_does_not_change_predictions() -> None:
    trees = example("jets", "trees")
    tables = events(trees)
    one_by_one = Model(trees.content, structs.replace(trees.manifest, batch="event"))
    assert predictions(one_by_one, tables).equals(predictions(trees, tables))


# -- outputs that are refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operators", "code"),
    [
        ("zero = Sub(pt, pt) bad = Log(zero)", Code.NOT_FINITE),
        ("bad = Add(pt, two)", Code.OUT_OF_BOUNDS),
        ("bad = Slice(pt, two_int, far)", Code.OUTPUT_SHAPE),
    ],
)
@pytest.mark.parametrize("details", [True, False])
def test_invalid_outputs_are_rejected(operators: str, code: Code, details: bool) -> None:
    made = model(
        PT,
        f"toy (float[N] pt) => (float[N, 3] p) {{ {SUM} {operators} q = Unsqueeze(bad, axis) {THREE} }}",
        two=np.float32(2),
        two_int=[2],
        far=[2**40],
    )
    with pytest.raises(ModelRefused) as raised:
        list(predict(made, task("jets"), [toy_tables()], details=details))
    assert raised.value.code == code
    assert bool(raised.value.reason) == details


def test_inputs_of_an_event_are_bounded() -> None:
    """They are made here, not in the sandbox."""
    lists = [
        f'c{number} = {{ source = "jets.constituents", dtype = "float64", layout = "padded:100000" }}'
        for number in range(200)
    ]
    wanted = read_manifest(manifest("\n".join(lists)).encode(), task("jets"))
    with pytest.raises(ModelRefused) as raised:
        Inputs(wanted, interface_of(task("jets")), toy_tables())
    assert raised.value.code == Code.MEMORY


def test_the_time_of_all_calls_is_bounded() -> None:
    trees = example("jets", "trees")
    with pytest.raises(ModelRefused) as raised:
        list(predict(trees, task("jets"), [events(trees)], limits=SandboxLimits(total_seconds=0)))
    assert raised.value.code == Code.TIME


def test_a_missing_column_is_an_unusable_dataset() -> None:
    operators = f"{SUM} e = Cast <to = 1> (d0) q = Unsqueeze(e, axis) {THREE}"
    made = model(D0, f"toy (double[N] d0) => (float[M, 3] p) {{ {operators} }}")
    tables = toy_tables()
    with pytest.raises(UnusableDataset, match="d0"):
        list(predict(made, task("jets"), [tables | {"tracks": tables["tracks"].drop(["d0"])}]))


def test_failed_predictions_leave_no_file(tmp_path: Path) -> None:
    made = model(PT, f"toy (float[N] pt) => (float[N, 3] p) {{ {SUM} q = Unsqueeze(pt, axis) {THREE} }}")
    with pytest.raises(ModelRefused):
        write_predictions(made, task("jets"), Dataset(JETS), EventRange(0, 40), tmp_path / "p.parquet")
    assert not list(tmp_path.iterdir())


def test_progress_reaches_all_events(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    trees = example("jets", "trees")
    rows = write_predictions(
        *(trees, task("jets"), Dataset(JETS), EventRange(0, 40), tmp_path / "p.parquet"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (40, 40)
    assert pq.read_metadata(tmp_path / "p.parquet").num_rows == rows


# -- size -------------------------------------------------------------------------------------------------


def test_parameters_are_counted() -> None:
    assert count(example("jets", "deepsets").content).n_params == 18_731
    trees = count(example("jets", "trees").content)
    splits = 360 * (11 * 2 + 12)  # 120 rounds of 3 classes: 11 splits and 12 leaves each
    assert trees.n_params == splits + 3 + 2 * 3, "and a number and a label of 8 bytes for each class"


def test_wide_numbers_count_for_more() -> None:
    packed = model(
        PT,
        f"toy (float[N] pt) => (float[N, 3] p) {{ {SUM} w = Cast <to = 1> (wide) "
        f"s = ReduceSum <keepdims = 0> (w) z = Mul(pt, s) q = Unsqueeze(z, axis) {THREE} }}",
        wide=np.zeros(1000),
    )
    facts = count(packed.content)
    assert facts.numbers == 1001
    assert facts.n_params == 2 * 1001, "8 bytes hold two of the usual"


def test_components_count_their_limits() -> None:
    edges = example("tracking", "edges")
    assert check(edges, task("tracking")).n_params == count(edges.content).n_params + 2


# -- the sandbox ------------------------------------------------------------------------------------------

#: What a model that has taken over its process could try, after what the worker gives up.
ATTEMPTS = """
import ctypes, encodings.idna, fcntl, os, resource, socket, struct, sys, threading
sys.argv = ["worker.py", str(os.getppid()), str(max(os.sched_getaffinity(0))), str(2**30)]
from collidium.inference import worker
print(worker.confine(*map(int, sys.argv[1:])))
def attempt(name, call):
    try:
        call()
        print(name, "works")
    except (OSError, RuntimeError, MemoryError):
        print(name, "fails")
attempt("read", lambda: open("/etc/hostname").read())
attempt("list", lambda: os.listdir("/"))
attempt("write", lambda: open("/tmp/collidium-model-was-here", "w"))
attempt("connect", lambda: socket.socket().connect(("127.0.0.1", int(os.environ["PORT"]))))
attempt("local", lambda: socket.socket(socket.AF_UNIX).connect(os.environ["LOCAL"]))
attempt("limits", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0)))
attempt("fork", os.fork)
attempt("thread", lambda: threading.Thread(target=print).start())
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("owner", lambda: fcntl.ioctl(0, 0x8901, struct.pack("i", os.getppid())))  # of SIGIO
attempt("memory", lambda: ctypes.create_string_buffer(2**31))
"""


def test_confinement_is_known_without_a_model() -> None:
    made = example("tracking", "edges")
    assert set(confinement()) == set(check(made, task("tracking")).confined_by)


def test_a_confined_process_reaches_nothing(needs: Needs, tmp_path: Path) -> None:
    needs("landlock")
    local = str(tmp_path / "local")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as service:
        service.bind(local)
        service.listen()
        environment = os.environ | {"LOCAL": local, "PORT": str(server.getsockname()[1])}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        done = subprocess.run(
            [sys.executable, "-c", ATTEMPTS],
            stdin=service,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    confined, *attempts = done.stdout.splitlines()
    if "calls" in confined:
        names = "read list write connect local limits fork thread signal owner memory"
        assert attempts == [f"{name} fails" for name in names.split()], done.stderr
        return
    attempts = [line for line in attempts if not line.startswith(("local", "limits", "owner"))]
    expected = {
        *("read fails", "list fails", "write fails", "memory fails"),
        *(("connect fails",) if "network" in confined or "ports" in confined else ("connect works",)),
        *(("fork fails", "thread fails") if "processes" in confined else ("fork works", "thread works")),
        *(("signal fails",) if "signals" in confined or "processes" in confined else ("signal works",)),
    }
    assert set(attempts) == expected, done.stderr


def test_a_closed_sandbox_leaves_no_process() -> None:
    with open_model(example("jets", "deepsets"), task("jets")) as sandbox:
        process: subprocess.Popen[bytes] = sandbox._process
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL
    assert not Path(f"/proc/{process.pid}").exists()
