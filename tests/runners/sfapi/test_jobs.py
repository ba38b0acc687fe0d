"""Jobs that really run behind a Superfacility API: their whole life."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runners.following import reaches
from tests.runners.sfapi.conftest import MakeRunner, handle, job
from tests.runners.sfapi.superfacility import Superfacility
from tests.waiting import eventually_async

from collidium.contracts.runner import JobProgress, JobState, Runner, RunnerRefused, RunnerUnavailable
from collidium.testing.conformance import check_runner

REAL_TABLES = (
    f"{sys.executable} -c '"
    "import sys, pyarrow, pyarrow.parquet; first, events = int(sys.argv[1]), int(sys.argv[2]);"
    'table = pyarrow.table([range(first, first + events)], names=["event_id"]);'
    'pyarrow.parquet.write_table(table, sys.argv[3] + "/particles.parquet")'
    "' {first_event} {events} {output}"
)


async def test_it_keeps_the_contract(make_runner: MakeRunner, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    runner = make_runner(pipeline_command=REAL_TABLES)
    another = make_runner(pipeline_command=REAL_TABLES)
    await check_runner(runner, output, another=lambda: another, interval=0.05)


async def test_the_ordered_events_are_simulated_by_parts_with_one_seed(
    api: Superfacility, make_runner: MakeRunner, tmp_path: Path
) -> None:
    runner = make_runner(sfapi_events_per_part=3)
    submitted = await runner.submit(job(events=7))
    status = await reaches(runner, submitted)
    assert status.state == JobState.COMPLETED
    assert status.node_hours is not None
    files = await runner.collect(submitted, tmp_path / "output", 2**30)
    assert [file.name for file in files] == [f"particles-{part:05d}-of-00003.parquet" for part in range(3)]
    data = [file.read_text().split() for file in files]
    assert [(first, events) for first, events, _, _ in data] == [("0", "3"), ("3", "2"), ("5", "2")]
    assert {seed for _, _, seed, _ in data} == {"42"}
    assert {channel for *_, channel in data} == {"ttbar"}
    assert api.count("POST", "/compute/jobs") == 1


async def test_progress_is_asked_for_once_for_all_who_watch(
    api: Superfacility, make_runner: MakeRunner, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    report = '{"stage": 2, "stages": 2, "title": "writing", "fraction": 0.5, "seconds_left": 3.5}'
    wait = f"until test -e {gate}; do sleep 0.02; done; : >$0/hits.parquet"
    flood = f"printf '%s%9999s' '{report}' '' >$COLLIDIUM_PROGRESS_FILE.json"  # no part's, and too long
    command = shlex.join(["sh", "-c", f"{flood}; echo '{report}' >$COLLIDIUM_PROGRESS_FILE; {wait}"])
    command = command.replace("{", "{{").replace("}", "}}") + " {output}"
    runner = make_runner(pipeline_command=command, sfapi_events_per_part=1)
    submitted = await runner.submit(job(events=2))
    expected = JobProgress(1, 1, "0 of 2 parts done", 0.75)

    async def reported() -> bool:
        return await make_runner().progress(submitted) == expected

    await eventually_async(reported)
    asked = api.count("POST", "/utilities/command")
    assert [await runner.progress(submitted) for _ in range(3)] == [expected] * 3
    assert api.count("POST", "/utilities/command") == asked + 1
    gate.touch()
    await reaches(runner, submitted)


async def test_a_large_file_comes_in_pieces(
    api: Superfacility, make_runner: MakeRunner, tmp_path: Path
) -> None:
    command = "sh -c 'head -c 9000000 /dev/urandom >\"$0/hits.parquet\"' {output}"
    runner = make_runner(pipeline_command=command)
    submitted = await runner.submit(job())
    assert (await reaches(runner, submitted)).state == JobState.COMPLETED
    (file,) = await runner.collect(submitted, tmp_path / "output", 2**30)
    assert file.read_bytes() == (api.scratch / "r1/0/hits.parquet").read_bytes()
    assert api.count("GET", "/utilities/download") == 4  # and the manifest
    assert not (api.scratch / "r1/pieces").exists()


async def test_what_was_collected_whole_is_not_fetched_again(
    api: Superfacility, make_runner: MakeRunner, tmp_path: Path
) -> None:
    runner = make_runner(sfapi_events_per_part=1)
    submitted = await runner.submit(job(events=2))
    await reaches(runner, submitted)
    first, second = await runner.collect(submitted, tmp_path, 2**30)
    second.write_text("cut")
    assert await runner.collect(submitted, tmp_path, 2**30) == [first, second]
    assert api.count("GET", "/utilities/download") == 3 + 4  # each time the two manifests
    assert second.read_bytes() == (api.scratch / "r1/1/particles.parquet").read_bytes()


async def test_a_file_that_arrives_changed_is_fetched_again(
    api: Superfacility, runner: Runner, tmp_path: Path
) -> None:
    """A byte that differs, so that its size does not."""
    submitted = await runner.submit(job())
    await reaches(runner, submitted)
    (file,) = await runner.collect(submitted, tmp_path, 2**30)
    whole = file.read_bytes()
    file.write_bytes(b"x" + whole[1:])
    with pytest.raises(
        RunnerUnavailable, match=r"particles\.parquet of part 0 differs from what the part wrote"
    ):
        await runner.collect(submitted, tmp_path, 2**30)
    (file,) = await runner.collect(submitted, tmp_path, 2**30)
    assert file.read_bytes() == whole


async def test_a_pipeline_that_fails_fails_the_job_and_has_no_output(
    make_runner: MakeRunner, tmp_path: Path
) -> None:
    runner = make_runner(pipeline_command="sh -c 'exit 3' {output}")
    submitted = await runner.submit(job())
    status = await reaches(runner, submitted)
    assert (status.state, status.reason) == (JobState.FAILED, "exit code 3")
    with pytest.raises(RunnerRefused, match="the output of part 0 is missing"):
        await runner.collect(submitted, tmp_path, 2**30)


def take_away(api: Superfacility) -> None:
    (api.scratch / "r1/1").rename(api.scratch / "r1/elsewhere")


def link(api: Superfacility) -> None:
    take_away(api)
    (api.scratch / "r1/1").symlink_to(api.scratch / "r1/elsewhere")


def swell(api: Superfacility) -> None:
    (api.scratch / "r1/1/particles.parquet").write_bytes(b"x" * 100_000)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (take_away, "output of part 1 is missing"),
        (link, "output of part 1 is missing"),
        (swell, "are allowed for what was ordered"),
    ],
)
async def test_output_that_is_missing_linked_or_too_large_is_refused(
    api: Superfacility,
    make_runner: MakeRunner,
    tmp_path: Path,
    change: Callable[[Superfacility], None],
    why: str,
) -> None:
    runner = make_runner(sfapi_events_per_part=1)
    submitted = await runner.submit(job(events=2))
    await reaches(runner, submitted)
    change(api)
    with pytest.raises(RunnerRefused, match=why):
        await runner.collect(submitted, tmp_path / "output", 90_000)
    assert api.count("GET", "/utilities/download") == 0


async def test_a_missing_output_is_seen_whatever_its_path(
    api: Superfacility, make_runner: MakeRunner, tmp_path: Path
) -> None:
    """The machine says what it lacks before it says that it is missing, so nothing may be cut off first."""
    deep = api.scratch.joinpath(*["very" * 20] * 3)
    deep.mkdir(parents=True)
    runner = make_runner(sfapi_directory=str(deep))
    with pytest.raises(RunnerRefused, match="output of part 0 is missing"):
        await runner.collect(handle(99), tmp_path / "output", 2**30)


async def test_a_cancelled_job_stops_computing(api: Superfacility, make_runner: MakeRunner) -> None:
    runner = make_runner(pipeline_command="sh -c 'sleep 1000' {output}", sfapi_events_per_part=1)
    submitted = await runner.submit(job(events=3))

    async def runs() -> bool:
        return (await runner.poll(submitted)).state == JobState.RUNNING

    await eventually_async(runs)
    await runner.cancel(submitted)
    status = await reaches(runner, submitted)
    assert (status.state, status.reason) == (
        JobState.CANCELLED,
        "3 of 3 parts cancelled; part 0: cancelled",
    )
    (batch_job,) = api.batch.jobs.values()

    async def nothing_runs() -> bool:
        return all(task.process is None for task in batch_job.tasks)

    await eventually_async(nothing_runs)


async def test_cancelling_stops_every_job_of_the_request_and_no_other(
    api: Superfacility, runner: Runner
) -> None:
    first, late = (api.add_job("collidium-r1", state="RUNNING") for _ in range(2))
    other = api.add_job("collidium-r11", state="RUNNING")
    await runner.cancel(handle(first.id))
    assert (await runner.poll(handle(first.id))).state == JobState.CANCELLED
    assert (await runner.poll(handle(late.id))).state == JobState.CANCELLED
    assert (await runner.poll(handle(other.id))).state == JobState.RUNNING


async def test_output_outlives_the_batch_systems_record_of_the_job(
    api: Superfacility, runner: Runner, tmp_path: Path
) -> None:
    submitted = await runner.submit(job())
    await reaches(runner, submitted)
    api.vanish(next(iter(api.batch.jobs)))
    with pytest.raises(RunnerRefused, match="knows no job"):
        await runner.poll(submitted)
    (file,) = await runner.collect(submitted, tmp_path, 2**30)
    assert file.read_text() == "0 1 42 ttbar "


async def test_a_handle_holds_the_number_of_parts(api: Superfacility, make_runner: MakeRunner) -> None:
    """Or a job of which not every part is known would pass for complete."""
    submitted = await make_runner(sfapi_events_per_part=1).submit(job(events=5))
    assert await make_runner().find("r1") == submitted
    found = api.add_job("collidium-r2", tasks=4, state="COMPLETED")
    found.tasks.pop()
    assert (await make_runner().poll(handle(found.id, "r2", 4))).state == JobState.UNKNOWN
