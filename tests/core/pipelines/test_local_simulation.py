"""Simulations on this machine, in containers and without: order, output, resume, failure, limits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pyarrow.parquet as pq
import pytest
from tests.core.pipelines import stages
from tests.core.pipelines.conftest import Machine
from tests.core.pipelines.stages import NAMES
from tests.podman import Podman
from tests.waiting import eventually

from collidium.contracts.pipeline import Stage
from collidium.datasets.reading.dataset import Dataset
from collidium.order import Order, UnknownOrder
from collidium.pipelines.processes import container_name
from collidium.pipelines.production import CannotSimulate, StageFailed
from collidium.pipelines.stages import default_processes

DATA = [
    "data/ttbar_pu0_particles/train-00000-of-00001.parquet",
    "data/ttbar_pu0_tracker_hits/train-00000-of-00002.parquet",
    "data/ttbar_pu0_tracker_hits/train-00001-of-00002.parquet",
]


def visible(directory: Path) -> list[str]:
    found = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if path.parts[0] not in {".collidium", "logs"})


def test_stages_run_in_order_and_leave_a_dataset(machine: Machine) -> None:
    made = machine.simulate()
    assert machine.ended == [(name, "done") for name in NAMES]
    assert visible(machine.directory) == ["README.md", *DATA]
    assert made.tables == {"particles": DATA[:1], "tracker_hits": DATA[1:]}
    assert (made.config, made.runtime, made.made_before) == ("ttbar_pu0", machine.runtime, False)
    assert made.size_bytes == sum((machine.directory / path).stat().st_size for path in DATA)
    assert Dataset(machine.directory).configs() == {"ttbar_pu0": ("particles", "tracker_hits")}
    parameters = "events=4 pileup=0 seed=42 first=0 on=1"
    assert machine.log("generate") == f"stage generate of ttbar: {parameters} {{braces}} environment: 42\n"
    assert not machine.work.exists()
    card = (machine.directory / "README.md").read_text()
    for part in ("| seed | 42 |", "| pipeline | shell, version 1 |", "| Detector | none |", "0 to 3"):
        assert part in card
    owners = {path.stat().st_uid for path in machine.directory.rglob("*")}
    assert owners == {os.getuid()}


def test_processes_start_where_events_take_longer_than_starting() -> None:
    stage = Stage("simulate", "", (), (), (), overhead_seconds=5.0, seconds_per_event=0.1)
    all_of_them = min(len(os.sched_getaffinity(0)), 8)
    for events, pileup, processes in ((49, 0, 1), (51, 0, all_of_them), (1, 200, all_of_them)):
        assert default_processes(stage, Order("ttbar", events, pileup)) == processes


def test_progress_is_reported_by_stages_or_estimated(here: Machine) -> None:
    here.simulate("noisy_generate")
    reported = [progress for progress in here.progress if progress.stage.name == "generate"]
    assert (reported[0].fraction, reported[0].guessed) == (pytest.approx(0, abs=0.1), True)
    assert reported[0].remaining_seconds == pytest.approx(1, abs=0.5)
    assert [(p.fraction, p.guessed) for p in reported if not p.guessed][:1] == [(0.5, False)]
    assert (reported[-1].state, reported[-1].fraction) == ("done", 1.0)
    assert "collidium-progress 2 0\ncollidium-progress\n" in here.log("generate"), "these report nothing"
    assert "collidium-progress 1 2" not in here.log("generate")


def test_a_failed_stage_shows_its_log_and_is_run_again(
    machine: Machine,
) -> None:
    with pytest.raises(
        StageFailed, match=r"stage 3 of 4, reconstruct .*exit code 3.*reconstruct\.log"
    ) as caught:
        machine.simulate("fail_reconstruct")
    assert [line["detail"] for line in caught.value.errors][-2:] == ["simulating", "no such geometry: odd"]
    assert caught.value.exit_code == 1
    assert machine.ended == [("generate", "done"), ("simulate", "done"), ("reconstruct", "failed")]
    assert visible(machine.directory) == []
    machine.mend()
    machine.simulate("fail_reconstruct")
    assert machine.ended == [
        ("generate", "kept"),
        ("simulate", "kept"),
        ("reconstruct", "done"),
        ("write", "done"),
    ]


def test_partial_output_is_removed_unless_the_stage_resumes(here: Machine) -> None:
    with pytest.raises(StageFailed):
        here.simulate("fail_simulate")
    assert (here.work / "simulated" / "half").exists()
    here.mend()
    here.simulate("fail_simulate")  # the stage refuses to start where something half is there


def test_what_is_finished_is_not_made_again(here: Machine) -> None:
    here.simulate()
    before = {path: (here.directory / path).stat().st_mtime_ns for path in DATA}
    again = here.simulate()
    assert again.made_before
    assert here.progress == []
    assert {path: (here.directory / path).stat().st_mtime_ns for path in DATA} == before


@pytest.mark.parametrize("touch", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_changed_output_is_reported(here: Machine, touch: Callable[[Path], object]) -> None:
    here.simulate()
    touch(here.directory / DATA[0])
    with pytest.raises(CannotSimulate, match="gone or changed since: delete"):
        here.simulate()


def test_a_finished_stage_whose_output_is_damaged_runs_again(here: Machine) -> None:
    with pytest.raises(StageFailed):
        here.simulate("fail_write")
    (here.work / "simulated" / "events").write_text("other")
    here.mend()
    here.simulate("fail_write")
    assert [state for _, state in here.ended] == ["kept", "done", "done", "done"]


def test_another_order_in_the_same_directory_is_refused(here: Machine) -> None:
    with pytest.raises(StageFailed):
        here.simulate("fail_simulate")
    for other in ({"seed": 43}, {"events": 5}, {"first_event": 1}, {"flat": True}):
        with pytest.raises(CannotSimulate, match=f"another simulation, with {next(iter(other))} "):
            here.simulate("fail_simulate", **other)
    with pytest.raises(CannotSimulate, match="another simulation, with channel fail_simulate"):
        here.simulate("ttbar")


def test_what_lies_in_the_directory_already_is_not_touched(here: Machine) -> None:
    here.directory.mkdir()
    (here.directory / "README.md").write_text("mine")
    with pytest.raises(CannotSimulate, match=r"README\.md already, which no simulation made"):
        here.simulate()
    assert (here.directory / "README.md").read_text() == "mine"


def test_flat_tables_lie_in_the_directory_itself(here: Machine) -> None:
    made = here.simulate(flat=True)
    names = sorted(stages.tables(range(4)))
    assert visible(here.directory) == names
    assert made.tables == {"particles": names[:1], "tracker_hits": names[1:]}


def test_events_are_numbered_from_the_first(tmp_path: Path) -> None:
    script = stages.write_script(tmp_path / "scripts", range(90, 94))
    machine = Machine(tmp_path / "out", stages.native(script), "none")
    made = machine.simulate(first_event=90)
    assert made.first_event == 90
    table = pq.read_table(machine.directory / DATA[0])
    assert table.column("event_id").to_pylist() == [90, 91, 92, 93]
    assert "first=90" in machine.log("generate")


@pytest.mark.parametrize("events", [3, 5])
def test_tables_without_exactly_the_events_are_refused(here: Machine, events: int) -> None:
    with pytest.raises(CannotSimulate, match=r"did not make what was ordered: .*events"):
        here.simulate(events=events)
    assert visible(here.directory) == []


def test_a_stage_without_its_outputs_fails(here: Machine) -> None:
    with pytest.raises(CannotSimulate, match=r"stage simulate ended, and left no simulated"):
        here.simulate("lazy_simulate")
    here.mend()
    here.simulate("lazy_simulate")
    assert [state for _, state in here.ended] == ["kept", "done", "done", "done"]


def test_a_full_disk_is_reported(here: Machine) -> None:
    with pytest.raises(CannotSimulate, match=r"the disk of .* is full: stage simulate"):
        here.simulate("full_simulate")
    here.mend()
    here.simulate("full_simulate")


def test_a_disk_too_full_for_the_log_is_reported(here: Machine) -> None:
    (here.directory / "logs").mkdir(parents=True)
    (here.directory / "logs" / "simulate.log").symlink_to("/dev/full")
    with pytest.raises(CannotSimulate, match="is full: stage simulate"):
        here.simulate()


def test_a_time_limit_stops_the_stage_and_the_next_run_resumes(machine: Machine) -> None:
    with pytest.raises(CannotSimulate, match=r"time limit was over in stage generate.*continues from there"):
        machine.simulate("hang_generate", time_limit_seconds=1.5)
    assert machine.ended == [("generate", "failed")]
    machine.mend()
    machine.simulate("hang_generate")
    assert [state for _, state in machine.ended] == ["done"] * 4


@pytest.mark.parametrize("how", ["hang", "deaf"])
def test_an_interrupt_stops_what_runs_at_once(machine: Machine, how: str, podman: Podman) -> None:
    def interrupt(_: object) -> None:
        log = machine.directory / "logs" / "simulate.log"
        if log.exists() and log.read_text().count("\n") >= (how == "deaf") + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        machine.simulate(f"{how}_simulate", watch=interrupt)
    assert podman.run("ps", "--all", "--quiet") == ""
    assert running(machine) == []
    machine.mend()
    machine.simulate(f"{how}_simulate")
    assert [state for _, state in machine.ended] == ["kept", "done", "done", "done"]


def running(machine: Machine) -> list[str]:
    """Processes of this machine that work in its directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode()
        except OSError:
            continue
        if str(machine.work) in words and str(os.getpid()) != process.name:
            found.append(words)
    return found


def test_a_missing_program_is_reported(here: Machine) -> None:
    first, *others = here.pipeline.stages
    here.pipeline = replace(here.pipeline, stages=(replace(first, command=("no-such-program",)), *others))
    with pytest.raises(StageFailed, match="exit code 127") as caught:
        here.simulate()
    assert caught.value.errors == [{"detail": "no-such-program: No such file or directory"}]


def test_an_ended_stage_leaves_no_process(here: Machine) -> None:
    """A background process holds the stage's output open, and could write to the work of the next."""
    here.simulate("stay_generate")
    assert [state for _, state in here.ended] == ["done"] * 4
    eventually(lambda: running(here) == [], seconds=10)


def test_a_stage_ends_though_what_it_left_writes_on(here: Machine) -> None:
    began = monotonic()
    here.simulate("loud_generate")
    assert monotonic() - began < 15


def test_a_container_that_an_earlier_run_left_is_removed(in_containers: Machine, podman: Podman) -> None:
    with pytest.raises(StageFailed):
        in_containers.simulate("fail_generate")
    name = container_name(in_containers.work)
    podman.run("run", "--detach", "--init", f"--name={name}", stages.IMAGE, "sleep", "1000")
    in_containers.mend()
    in_containers.simulate("fail_generate")
    assert podman.run("ps", "--all", "--quiet") == ""


def test_a_container_sees_its_work_and_nothing_else(
    in_containers: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("https_proxy", "http://alice:secret@proxy.example:3128")
    in_containers.simulate("around_generate")
    log = in_containers.log("generate")
    assert "secret" not in log
    assert "CapEff:\t0000000000000000" in log
    assert "NoNewPrivs:\t1" in log
    assert "\nlo\n" in log
    assert "eth0" not in log
    assert f"user {os.getuid()}:{os.getgid()}" in log or "user 0:0" in log


def test_a_native_stage_sees_no_token(here: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("https_proxy", "http://alice:secret@proxy.example:3128")
    here.simulate("around_generate")
    assert "secret" not in here.log("generate")
    assert f"TMPDIR={here.work / 'tmp'}" in here.log("generate")


def test_an_unmountable_directory_is_reported(in_containers: Machine) -> None:
    in_containers.directory = in_containers.directory.with_name("a,b")
    with pytest.raises(CannotSimulate, match="no path with a comma"):
        in_containers.simulate()


def test_all_problems_of_the_numbers_are_reported_at_once(here: Machine) -> None:
    with pytest.raises(UnknownOrder) as caught:
        here.simulate(events=100_001, seed=2**128, first_event=-1)
    assert {problem["field"] for problem in caught.value.errors} == {"events", "seed", "first_event"}
    assert caught.value.exit_code == 2
    assert not here.directory.exists()


def test_an_unknown_channel_is_reported_with_the_known_ones(here: Machine) -> None:
    here.pipeline = replace(here.pipeline, channels={"ttbar": "top quarks"}, refused={"zee": "not yet"})
    with pytest.raises(UnknownOrder, match="there is no channel 'no'; there are: ttbar"):
        here.simulate("no")
    with pytest.raises(UnknownOrder, match="shell cannot simulate zee: not yet"):
        here.simulate("zee")
    assert not here.directory.exists()


def test_a_directory_in_use_is_refused(here: Machine) -> None:
    def meanwhile(_: object) -> None:
        other = Machine(here.directory, here.pipeline, here.runtime)
        with pytest.raises(CannotSimulate, match="another `collidium simulate` works in"):
            other.simulate()

    here.simulate(watch=meanwhile)
    assert here.ended == [(name, "done") for name in NAMES]
    eventually(lambda: running(here) == [])


def test_records_of_a_release_with_fewer_fields_are_known(here: Machine) -> None:
    here.simulate()
    for name in ("order.json", "finished.json"):
        file = here.directory / ".collidium" / name
        record = json.loads(file.read_text())
        del record["vary"]
        file.write_text(json.dumps(record))
    assert here.simulate().made_before


@pytest.mark.parametrize(
    "forged",
    ["{}", '{"files": 5}', '{"files": [{"path": 5}]}', '{"files": []}', '{"files": [], "more": 1}'],
)
def test_an_invalid_finished_file_is_reported(here: Machine, forged: str) -> None:
    here.simulate()
    (here.directory / ".collidium" / "finished.json").write_text(forged)
    with pytest.raises(CannotSimulate, match="is invalid: delete"):
        here.simulate()


@pytest.mark.parametrize("damage", ["", "[" * 100_000, "9" * 5000])
def test_stages_of_an_unknown_order_are_made_again(here: Machine, damage: str) -> None:
    with pytest.raises(CannotSimulate):
        here.simulate("lazy_reconstruct")
    (here.directory / ".collidium" / "order.json").write_text(damage)
    here.simulate(seed=43)
    assert here.ended == [(name, "done") for name in NAMES], "none of them was made with this seed before"
