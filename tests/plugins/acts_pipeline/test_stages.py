"""The commands of the stages: the same events however they are cut, clear refusals, nothing half-written."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.counts import LONG

from collidium.contracts.pipeline import SEED, TABLES
from collidium.datasets.schemas import EXTENDED
from collidium.order import LARGEST_SEED, Order, Variation
from collidium.pipelines.production import Production
from collidium.testing.server import run_command
from collidium_plugins.acts_pipeline import PIPELINE
from collidium_plugins.acts_pipeline.__main__ import failure_text, main
from collidium_plugins.acts_pipeline.order import StageError
from collidium_plugins.acts_pipeline.order import StageOrder as StageOrder
from collidium_plugins.acts_pipeline.stages import phases
from collidium_plugins.jet_finder.table import jets

STAGES = [stage.name for stage in PIPELINE.stages]
PROGRAM = (sys.executable, "-m", "collidium_plugins.acts_pipeline")
FULL_DISK = 4_096


def arguments(work: Path, **changes: object) -> list[str]:
    values = {"channel": "single_muon", "events": 4, "pileup": 0, "seed": 7, "work": work} | changes
    return [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def start(stage: str, options: Sequence[str], *, start_new_session: bool = False) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [*PROGRAM, stage, *options]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=start_new_session)


def run(stage: str, options: Sequence[str]) -> tuple[int, str, str]:
    done = run_command([stage, *options], os.environ, Path.cwd(), PROGRAM)
    return done.returncode, done.stdout, done.stderr


def test_the_seed_is_in_no_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every user of the machine can read those; evaluation sets have a secret one."""
    production = Production(Order("single_muon", 4, 0, LARGEST_SEED), PIPELINE)
    monkeypatch.setenv(SEED, str(LARGEST_SEED))
    for stage in PIPELINE.stages:
        words = production.words(stage, python="python3", work=str(tmp_path), processes=1)
        assert not [word for word in words if str(LARGEST_SEED) in word]
        assert main.make_context(stage.name, words[3:]).params["seed"] == LARGEST_SEED


def simulate(work: Path, events: int, first_event: int, processes: int) -> dict[str, pa.Table]:
    """All stages of top quark pairs in some pileup; the tables."""
    for stage in STAGES:
        # Pythia's start is most of what all stages take, in each process.
        used = processes if LONG or stage != "generate" else 1
        options = {"events": events, "first_event": first_event, "processes": used}
        code, _, errors = run(stage, arguments(work, channel="ttbar", pileup=3, **options))
        assert code == 0, errors
    return {name: pq.read_table(sorted((work / TABLES).glob(f"{name}-*.parquet"))) for name in EXTENDED}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pa.Table]]:
    """Events 0 to 2 with some pileup, by one process."""
    work = tmp_path_factory.mktemp("three")
    return work, simulate(work, events=3, first_event=0, processes=1)


def test_the_tables_are_those_of_the_hosted_format(three: tuple[Path, dict[str, pa.Table]]) -> None:
    work, tables = three
    for name, table in tables.items():
        assert table.schema == EXTENDED[name]
        assert table.column("event_id").to_pylist() == [0, 1, 2]
    assert sorted(path.name for path in (work / TABLES).iterdir()) == [
        f"{name}-00000-of-00001.parquet" for name in sorted(EXTENDED)
    ]


def test_tables_refer_to_each_other(three: tuple[Path, dict[str, pa.Table]]) -> None:
    _, tables = three
    for row in range(3):
        event = {name: table.slice(row, 1).to_pylist()[0] for name, table in tables.items()}
        particles = set(event["particles"]["particle_id"])
        assert len(particles) == len(event["particles"]["particle_id"]) > 100
        assert 0 not in particles
        hit_ids = [hit for hits in event["tracks"]["hit_ids"] for hit in hits]
        assert len(event["tracks"]["d0"]) > 5
        assert 0 <= min(hit_ids) <= max(hit_ids) < len(event["tracker_hits"]["x"])
        assert set(event["tracker_hits"]["particle_id"]) - {0} <= particles
        assert set(event["tracks"]["majority_particle_id"]) <= particles
        cells = event["calo_hits"]["contrib_particle_ids"]
        assert {one for ids in cells for one in ids} <= particles
        assert sum(event["particles"]["num_calo_hits"]) == sum(map(len, cells))
        assert all(0 <= place < len(cells) for jet in event["jets"]["constituents"] for place in jet)
        assert set(event["particles"]["parent_id"]) - {-1} <= particles
        assert event["particles"]["vertex_primary"][0] == 1
        assert max(event["particles"]["vertex_primary"]) > 1


def test_generated_events_are_written_as_hepmc3(three: tuple[Path, dict[str, pa.Table]]) -> None:
    """All of them, with the particles that leave the generator."""
    work, tables = three
    code, _, errors = run("hepmc3", arguments(work, channel="ttbar", pileup=3, events=3))
    assert code == 0, errors
    lines = (work / "events.hepmc3").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("E ")] == ["0", "1", "2"]
    final = [line.split() for line in lines if line.startswith("P ") and line.split()[-1] == "1"]
    particles = tables["particles"]
    kinds = [kind for event in particles.column("pdg_id").to_pylist() for kind in event]
    assert len(final) > 100
    assert {int(words[3]) for words in final} <= set(kinds)


def test_jets_are_those_that_the_command_makes(three: tuple[Path, dict[str, pa.Table]]) -> None:
    _, tables = three
    flavours = {one for of in tables["jets"].column("flavour").to_pylist() for one in of}
    assert flavours == {0, 4, 5}
    assert tables["jets"].equals(jets(tables["calo_hits"], tables["particles"]))


def test_events_depend_on_no_chunk_and_no_process(
    three: tuple[Path, dict[str, pa.Table]], tmp_path: Path
) -> None:
    work, tables = three
    if not LONG:  # collisions depend on their number alone, as tests of pileup show: none is made again
        copytree(work / "pool", tmp_path / "pool", ignore=ignore_patterns("order.json"))
    alone = simulate(tmp_path, events=2, first_event=1, processes=2)
    for name, table in tables.items():
        assert alone[name].equals(table.slice(1)), name


def test_finished_chunks_are_not_made_again(tmp_path: Path) -> None:
    code, output, _ = run("generate", arguments(tmp_path))
    lines = output.splitlines()
    assert code == 0
    assert lines[-1] == "collidium-progress 4 4"
    chunks = sorted((tmp_path / "generated").glob("*.arrow"))
    changed = chunks[0].stat().st_mtime_ns
    chunks[1].unlink()
    code, output, _ = run("generate", arguments(tmp_path))
    assert output.splitlines() == ["collidium-progress 3 4", "collidium-progress 4 4"]
    assert chunks[0].stat().st_mtime_ns == changed
    assert chunks[1].exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channel": "dihiggs"}, "Pythia has no process gg → HH"),
        ({"channel": "nothing"}, "'nothing' is not a channel; there are ttbar, ggf"),
        ({"channel": "../../etc"}, "is not a channel"),
        ({"events": 0}, "0 is not in the range 1<=x<="),
        ({"events": "1e3"}, "'1e3' is not a valid integer"),
        ({"events": -5}, "is not in the range"),
        ({"events": 2**40}, "is not in the range"),
        ({"pileup": -1}, "is not in the range 0<=x<=1000"),
        ({"seed": 2**128}, "is not in the range"),
        ({"processes": 0}, "is not in the range 1<=x<=256"),
        ({"first_event": 2**32 - 2}, "event ids end at 4294967295"),
        ({"wrok": "x"}, "No such option"),
        ({"stage": "generate_"}, "'generate_' is not one of"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    options = dict(changes)
    stage = str(options.pop("stage", "generate"))
    result = CliRunner().invoke(main, [stage, *arguments(tmp_path / "work", **options)])
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "work").exists()


def test_a_stage_wants_the_one_before(tmp_path: Path) -> None:
    code, _, errors = run("simulate", arguments(tmp_path))
    assert code == 1
    assert "lacks events 0 to 0 and 3 more chunks: run the previous stage first" in errors


def test_the_work_of_another_order_is_left_alone(tmp_path: Path) -> None:
    order = StageOrder("single_muon", events=4, pileup=0, seed=7, first_event=0, work=tmp_path)
    phases("generate", order)
    changes: list[dict[str, Any]] = [
        *({"seed": 8}, {"channel": "zee"}, {"events": 5}, {"first_event": 1}),
        *({"pileup": 1}, {"variation": Variation(field=0.9)}, {"lhe": "0" * 64}),
    ]
    for change in changes:
        with pytest.raises(StageError, match="belongs to another order"):
            phases("generate", replace(order, **change))


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    options = arguments(tmp_path, channel="ttbar")
    with start("generate", options) as process:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (FULL_DISK, FULL_DISK))
        _, errors = process.communicate(timeout=100)
        code = process.returncode
    assert code == 1
    assert errors.startswith("error: the disk is full")
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["order.json"]
    assert run("generate", options)[0] == 0


def test_the_message_of_a_full_disk() -> None:
    message = failure_text(OSError(errno.ENOSPC, "No space left on device"))
    assert message is not None
    assert "the disk is full" in message


@pytest.fixture
def under_way(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A stage with two workers that has made its first chunks and has many more to make."""
    with start(
        "generate", arguments(tmp_path, events=100_000, processes=2), start_new_session=True
    ) as process:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith("collidium-progress ") or " 0 " in line:
            assert line, "the stage ended"
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in children.split()]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_interrupt_keeps_whole_chunks(
    under_way: subprocess.Popen[str], tmp_path: Path, number: int, code: int
) -> None:
    workers = workers_of(under_way.pid)
    assert len(workers) == 2
    under_way.send_signal(number)
    _, errors = under_way.communicate(timeout=30)
    assert under_way.returncode == code
    assert errors == ""
    assert not any(map(is_running, workers))
    for path in (tmp_path / "generated").glob("*.arrow"):
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
            assert reader.read_all().num_rows > 0


def test_workers_end_when_their_parent_is_killed(under_way: subprocess.Popen[str], tmp_path: Path) -> None:
    workers = workers_of(under_way.pid)
    under_way.kill()
    under_way.wait()
    output = under_way.stderr
    assert output is not None
    output.read()  # until the last process that could write to it has ended
    assert not any(map(is_running, workers))


def test_a_worker_that_is_killed_fails_the_stage(under_way: subprocess.Popen[str]) -> None:
    os.kill(workers_of(under_way.pid)[0], signal.SIGKILL)
    _, errors = under_way.communicate(timeout=30)
    assert under_way.returncode == 1
    assert "a worker process ended with exit code -9" in errors


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    folder.mkdir()
    (folder / ".events-0000000000-0000000001.arrow.123.partial").write_text("half")
    assert run("generate", arguments(tmp_path))[0] == 0
    assert not list(folder.glob(".*"))
