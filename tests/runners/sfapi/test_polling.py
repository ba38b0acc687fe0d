"""Many jobs in few calls, whatever Slurm says of them."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runners.sfapi.conftest import MakeRunner, handle, job
from tests.runners.sfapi.superfacility import Answer, Superfacility, rows

from collidium.contracts.runner import JobState, JobStatus, Runner, RunnerRefused, RunnerUnavailable
from collidium_runners.batch.states import TABLE, ArrayTaskStatus
from collidium_runners.sfapi import queue
from collidium_runners.sfapi.client import Pace
from collidium_runners.sfapi.queue import by_job


async def test_ten_thousand_jobs_are_polled_in_a_handful_of_calls(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    api.answer_seconds = 0.02
    states = ("PENDING", "RUNNING", "COMPLETED", "TIMEOUT")
    handles = {}
    for number in range(10_000):
        added = api.add_job(f"collidium-r{number}", state=states[number % 4])
        handles[handle(added.id, f"r{number}")] = number
    statuses = await make_runner(sfapi_calls_per_second=50).poll_many(list(handles))
    expected = (JobState.QUEUED, JobState.RUNNING, JobState.COMPLETED, JobState.FAILED)
    assert len(statuses) == 10_000
    for text, number in handles.items():
        status = statuses[text]
        assert isinstance(status, JobStatus)
        assert status.state == expected[number % 4]
    assert len(api.calls) == 17


async def test_large_arrays_share_a_call_with_few(
    api: Superfacility, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "TASKS_PER_CALL", 10)
    sizes = [4, 4, 4, 100, 1]
    handles = [
        handle(api.add_job(f"collidium-r{n}", tasks=size, state="COMPLETED").id, f"r{n}", size)
        for n, size in enumerate(sizes)
    ]
    found = await runner.poll_many(handles)
    assert {getattr(status, "state", status) for status in found.values()} == {JobState.COMPLETED}
    assert len(api.calls) == 4  # 4 + 4, 4, 100, 1


async def test_one_call_that_fails_leaves_the_others(
    api: Superfacility, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "IDS_PER_CALL", 2)
    handles = [handle(api.add_job(f"collidium-r{n}", state="RUNNING").id, f"r{n}") for n in range(6)]
    api.misbehave(Answer(500), where="/compute/jobs")
    found = (await runner.poll_many(handles)).values()
    assert sum(isinstance(status, RunnerUnavailable) for status in found) == 2
    assert sum(isinstance(status, JobStatus) for status in found) == 4


@pytest.mark.parametrize(
    "answer",
    [Answer(413), Answer(414), Answer(431), Answer(200, " " * 17_000_000)],
    ids=lambda a: str(a.status),
)
async def test_too_long_a_query_or_response_is_split_in_halves(
    answer: Answer, api: Superfacility, runner: Runner
) -> None:
    handles = [handle(api.add_job(f"collidium-r{n}", state="RUNNING").id, f"r{n}") for n in range(8)]
    api.misbehave(answer, where="/compute/jobs", times=2)
    assert all(isinstance(found, JobStatus) for found in (await runner.poll_many(handles)).values())
    assert len(api.calls) == 5


async def test_every_state_of_the_table_is_followed(api: Superfacility, runner: Runner) -> None:
    expected = {
        handle(api.add_job(f"collidium-r{n}", state=word).id, f"r{n}"): state
        for n, (word, _, state) in enumerate(TABLE)
    }
    statuses = await runner.poll_many(list(expected))
    assert {text: getattr(status, "state", status) for text, status in statuses.items()} == expected


@pytest.mark.parametrize(
    "text",
    [
        "no-such-job",
        "",
        "1.1.",
        "0.1.r1",
        "1.0.r1",
        "-1.1.r1",
        "1.1.r 1",
        "1.1.r1\n",
        "\N{ARABIC-INDIC DIGIT ONE}.1.r1",
        "1" * 300,
    ],
)
async def test_a_handle_that_was_never_given_out_is_refused(
    text: str, api: Superfacility, runner: Runner
) -> None:
    assert isinstance((await runner.poll_many([text]))[text], RunnerRefused)
    await runner.cancel(text)
    assert not api.calls


async def test_every_call_takes_a_turn(
    api: Superfacility, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = []

    async def turn(pace: Pace) -> None:
        turns.append(pace)

    monkeypatch.setattr(Pace, "turn", turn)
    await runner.submit(job())
    api.tokens.revoke_all()
    await runner.find("r1")
    assert len(turns) == len(api.calls)
    assert len(set(turns)) == 1


async def test_a_job_of_another_name_is_not_found_without_api_filters(
    api: Superfacility, runner: Runner
) -> None:
    api.add_job("collidium-r11", state="COMPLETED")
    everything = json.dumps({"status": "OK", "output": rows.sacct(api.batch.jobs.values())})
    api.misbehave(Answer(200, everything, "application/json"), where="/compute/jobs", times=2)
    assert await runner.find("r1") is None


async def test_calls_keep_their_pace_and_their_order() -> None:
    now = 100.0
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    pace = Pace(4, lambda: now, sleep)
    await asyncio.gather(*(pace.turn() for _ in range(4)))
    assert naps == [0.25, 0.5, 0.75]
    now = 102.0
    await pace.turn()
    assert naps == [0.25, 0.5, 0.75]


# -- rows ---------------------------------------------------------------------------------------------


def row(jobid: str, state: str = "RUNNING", **fields: str) -> dict[str, str]:
    return {"jobid": jobid, "state": state, "elapsedraw": "0", "nnodes": "1", **fields}


def test_those_that_wait_have_one_row_together() -> None:
    data = [row("7_0"), row("7_[1-3,5%2]", "PENDING", reason="Priority", elapsedraw="")]
    assert by_job(data) == {
        7: {0: ArrayTaskStatus(0, JobState.RUNNING, 0.0)}
        | {
            index: ArrayTaskStatus(index, JobState.QUEUED, None, "waiting: Priority")
            for index in (1, 2, 3, 5)
        }
    }


def test_a_list_that_slurm_cut_short_counts_as_far_as_it_goes() -> None:
    assert sorted(by_job([row("7_[1,3,5-8,...]", "PENDING")])[7]) == [1, 3, 5, 6, 7, 8]


def test_a_requeued_task_has_the_state_of_its_latest_row() -> None:
    failed = row("7_0", "NODE_FAIL", submit="2026-11-20T10:00:00", start="2026-11-20T10:01:00")
    again = row("7_0", "PENDING", submit="2026-11-20T10:00:00", start="Unknown")
    for data in ([failed, again], [again, failed]):
        assert by_job(data)[7][0].state == JobState.QUEUED


def test_steps_and_other_jobs_are_no_tasks() -> None:
    assert by_job([row("7_0.batch"), row("7_0.extern"), row("8"), row(""), {"jobid": None}, {}]) == {}


def test_node_hours_count_every_node() -> None:
    (task,) = by_job([row("7_0", elapsedraw="1800", nnodes="4")])[7].values()
    assert task.node_seconds == 7200


def test_reasons_are_those_of_slurm() -> None:
    data = {
        ("FAILED", "3:0"): "exit code 3",
        ("FAILED", "0:9"): "failed",
        ("OUT_OF_MEMORY", "0:125"): "out of memory",
        ("CANCELLED by 4711", "0:0"): "cancelled",
        ("COMPLETED", "0:0"): None,
    }
    for (state, code), reason in data.items():
        assert by_job([row("7_0", state, exitcode=code)])[7][0].reason == reason


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["jobid", "state", "elapsedraw", "nnodes", "reason", "exitcode", "submit", "start"]
            ),
            st.one_of(
                st.none(),
                st.integers(),
                st.text(),
                st.sampled_from(["7_0", "7_[0-2]", "FAILED", "", "7_[,-]"]),
            ),
        )
    )
)
def test_no_row_is_too_strange(data: list[dict[str, object]]) -> None:
    for tasks in by_job(data).values():
        assert tasks
        assert all(isinstance(task.state, JobState) for task in tasks.values())
