"""Slurm's states and what they make of a job."""

from __future__ import annotations

from decimal import Decimal

import pytest

from collidium.contracts.runner import JobState, JobStatus
from collidium_runners.batch.states import TABLE, ArrayTaskStatus, TaskRecord, job_status, state_of

QUEUED, RUNNING, COMPLETED, FAILED, CANCELLED, UNKNOWN = JobState


def test_no_word_means_two_things() -> None:
    words = [word for full, short, _ in TABLE for word in (full, short) if word]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("COMPLETED", COMPLETED),
        ("CD", COMPLETED),
        ("completed", COMPLETED),
        ("CANCELLED by 0", CANCELLED),
        ("CANCELLED+", CANCELLED),
        ("CA", CANCELLED),
        ("NODE_FAIL", FAILED),
        ("OUT_OF_MEMORY", FAILED),
        ("OOM", FAILED),
        ("PREEMPTED", FAILED),
        ("BOOT_FAIL", FAILED),
        ("DEADLINE", FAILED),
        ("TIMEOUT", FAILED),
        ("REQUEUED", QUEUED),
        ("SPECIAL_EXIT", QUEUED),
        ("RESV_DEL_HOLD", QUEUED),
        ("SUSPENDED", RUNNING),
        ("STOPPED", RUNNING),
        ("COMPLETING", RUNNING),
        ("REVOKED", UNKNOWN),
        ("SOMETHING_NEW", UNKNOWN),
        ("", UNKNOWN),
        ("   ", UNKNOWN),
    ],
)
def test_a_word_of_slurm_is_one_of_our_states(words: str, state: JobState) -> None:
    assert state_of(words) == state


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("COMPLETED", "COMPLETING"), RUNNING),
        (("PENDING", "REQUEUED"), QUEUED),
        (("RUNNING", "CONFIGURING"), QUEUED),
        (("RUNNING", "SOMETHING_NEW"), UNKNOWN),
        ((), UNKNOWN),
    ],
)
def test_a_state_with_flags(words: tuple[str, ...], state: JobState) -> None:
    assert state_of(*words) == state


@pytest.mark.parametrize(
    ("states", "together"),
    [
        ([COMPLETED, COMPLETED], COMPLETED),
        ([COMPLETED, FAILED], FAILED),
        ([CANCELLED, FAILED], FAILED),
        ([COMPLETED, CANCELLED], CANCELLED),
        ([CANCELLED, CANCELLED], CANCELLED),
        ([FAILED, RUNNING], RUNNING),
        ([FAILED, QUEUED], RUNNING),
        ([COMPLETED, QUEUED], RUNNING),
        ([RUNNING, QUEUED], RUNNING),
        ([QUEUED, QUEUED], QUEUED),
        ([COMPLETED, UNKNOWN], UNKNOWN),
        ([COMPLETED], UNKNOWN),  # the other part has no task
        ([], UNKNOWN),
    ],
)
def test_the_tasks_make_the_job(states: list[JobState], together: JobState) -> None:
    tasks = [ArrayTaskStatus(index, state) for index, state in enumerate(states)]
    assert job_status(tasks, 2).state == together


def test_node_hours_are_summed_with_the_first_failure() -> None:
    tasks = [
        ArrayTaskStatus(2, FAILED, 360, "exit code 3"),
        ArrayTaskStatus(0, COMPLETED, 3600),
        ArrayTaskStatus(1, FAILED, None, "timeout"),
    ]
    expected = JobStatus(FAILED, Decimal("1.100"), "2 of 3 parts failed; part 1: timeout")
    assert job_status(tasks, 3) == expected
    assert job_status(tasks[:1], 1) == JobStatus(FAILED, Decimal("0.100"), "exit code 3")
    assert job_status([ArrayTaskStatus(0, QUEUED)], 1).node_hours is None


@pytest.mark.parametrize(
    ("exit_code", "cancelled", "state", "reason"),
    [
        (0, False, COMPLETED, None),
        (0, True, COMPLETED, None),
        (3, True, FAILED, "exit code 3"),
        (143, False, FAILED, "terminated"),
        (143, True, CANCELLED, "cancelled"),
    ],
)
def test_a_record_gives_the_end_of_a_task(
    exit_code: int, cancelled: bool, state: JobState, reason: str | None
) -> None:
    record = TaskRecord.parse(f'{{"exit_code": {exit_code}, "began": 100, "ended": 160}}')
    assert record is not None
    assert record.status(4, cancelled=cancelled) == ArrayTaskStatus(4, state, 60, reason)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"exit_code": null, "began": 1, "ended": 2}', "0", '{"exit_code": 1e999}']
)
def test_half_a_record_is_none(text: str) -> None:
    assert TaskRecord.parse(text) is None


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    record = TaskRecord(0, 200, 100)
    assert record.status(0).node_seconds == 0
