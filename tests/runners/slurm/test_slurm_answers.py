"""What Slurm's commands print and its REST API answers, version by version, and what is made of it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from collidium.contracts.runner import JobState, JobStatus, RunnerRefused, RunnerUnavailable
from collidium.runtime.logs import single_line
from collidium_runners.batch.states import TaskRecord, submission_error
from collidium_runners.slurm.backend import ReportedTask, rest_tasks, sacct_tasks, seconds, squeue_tasks
from collidium_runners.slurm.commands import environment
from collidium_runners.slurm.folder import FolderState
from collidium_runners.slurm.runner import combined_status, is_lost, reports_all_parts

NAME = "collidium-r1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:03", 3),
        ("5", 5),
        ("1:02:03", 3723),
        ("2-01:02:03", 176_523),
        ("INVALID", 0),
        ("", 0),
        ("2-INVALID", 0),
    ],
)
def test_times_of_squeue(text: str, expected: int) -> None:
    assert seconds(text) == expected


def test_lines_of_squeue() -> None:
    printed = (
        f"12|4-5|PENDING|0:00|1|0|Resources|{NAME}|\n"
        f"12|0|FAILED|1:00|2|1792|NonZeroExitCode|{NAME}|\n"
        f"12|1|CANCELLED|0:10|1|15|None|{NAME}|\n"
        "13|N/A|RUNNING|0:01|1|0|None|two\nlines|\n"
        "slurm_load_jobs: something else\n"
    )
    assert list(squeue_tasks(printed)) == [
        ReportedTask(12, NAME, None, ("PENDING",), 0, 0, "Resources"),
        ReportedTask(12, NAME, 0, ("FAILED",), 120, 1792, "NonZeroExitCode"),
        ReportedTask(12, NAME, 1, ("CANCELLED",), 10, 15, "None"),
    ]


def test_lines_of_sacct() -> None:
    printed = (
        f"12_0|COMPLETED|3600|2|0:0|{NAME}\n"
        f"12_1|CANCELLED by 0|60|1|0:15|{NAME}\n"
        f"12_2|FAILED|60|1|3:0|{NAME}\n"
        f"12_[3-5]|PENDING|0|0|0:0|{NAME}\n"
        "12_0.batch|COMPLETED|3600|2|0:0\n"
        "\n"
    )
    assert list(sacct_tasks(printed)) == [
        ReportedTask(12, NAME, 0, ("COMPLETED",), 7200, 0),
        ReportedTask(12, NAME, 1, ("CANCELLED",), 60, 15),
        ReportedTask(12, NAME, 2, ("FAILED",), 60, 768),
        ReportedTask(12, NAME, None, ("PENDING",), 0, 0),
    ]


def number(value: float | None) -> dict[str, object]:
    """As versions from v0.0.39 on write it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def test_jobs_of_the_rest_api_from_its_first_versions() -> None:
    job = {
        "job_id": 15,
        "array_job_id": 12,
        "array_task_id": 3,
        "name": NAME,
        "job_state": "FAILED",
        "state_reason": "NonZeroExitCode",
        "exit_code": 768,
        "start_time": 1000,
        "end_time": 1060,
        "node_count": 2,
    }
    pending = {"job_id": 12, "array_job_id": 12, "array_task_id": None, "name": NAME, "job_state": "PENDING"}
    assert list(rest_tasks([job, pending], now=5000)) == [
        ReportedTask(12, NAME, 3, ("FAILED",), 120, 768, "NonZeroExitCode"),
        ReportedTask(12, NAME, None, ("PENDING",), 0, 0, ""),
    ]


def test_jobs_of_the_rest_api_from_its_later_versions() -> None:
    job = {
        "job_id": 15,
        "array_job_id": number(12),
        "array_task_id": number(0),
        "name": NAME,
        "job_state": ["RUNNING", "COMPLETING"],
        "state_reason": "None",
        "exit_code": {"return_code": number(3), "signal": {"id": number(9), "name": "KILL"}},
        "start_time": number(1000),
        "end_time": number(9000),
        "node_count": number(1),
    }
    alone = job | {"array_job_id": number(0), "array_task_id": number(None)}
    assert list(rest_tasks([job, alone], now=1100)) == [
        ReportedTask(12, NAME, 0, ("RUNNING", "COMPLETING"), 100, 777, "None"),
        ReportedTask(15, NAME, None, ("RUNNING", "COMPLETING"), 100, 777, "None"),
    ]


@pytest.mark.parametrize(
    ("task", "state", "reason"),
    [
        (ReportedTask(1, NAME, 0, ("FAILED",), 0, 768), JobState.FAILED, "exit code 3"),
        (ReportedTask(1, NAME, 0, ("FAILED",), 0, 9), JobState.FAILED, "signal 9"),
        (ReportedTask(1, NAME, 0, ("TIMEOUT",), 0, 15), JobState.FAILED, "timeout"),
        (ReportedTask(1, NAME, 0, ("OUT_OF_MEMORY",), 0, 0), JobState.FAILED, "out of memory"),
        (ReportedTask(1, NAME, 0, ("CANCELLED",), 0, 15), JobState.CANCELLED, "cancelled"),
        (ReportedTask(1, NAME, 0, ("HAUNTED",)), JobState.UNKNOWN, "Slurm reports haunted"),
        (ReportedTask(1, NAME, 0, ("",)), JobState.UNKNOWN, "Slurm reports nothing"),
        (ReportedTask(1, NAME, 0, ("PENDING",), 0, 0, "Resources"), JobState.QUEUED, "waits for Resources"),
        (ReportedTask(1, NAME, 0, ("PENDING",), 0, 0, "None"), JobState.QUEUED, None),
        (ReportedTask(1, NAME, 0, ("RUNNING",), 0, 0, "None"), JobState.RUNNING, None),
    ],
)
def test_a_task_as_it_is_reported(task: ReportedTask, state: JobState, reason: str | None) -> None:
    status = task.status(0, parts_per_node=1)
    assert (status.state, status.reason) == (state, reason)


def test_slurm_precedes_the_record_and_the_record_the_rest() -> None:
    """Part 0 was put back into the queue, part 1 has ended and is forgotten, part 2 has not begun."""
    seen = [ReportedTask(1, NAME, 0, ("RUNNING",), 3600), ReportedTask(1, NAME, None, ("PENDING",), 0)]
    record = TaskRecord(exit_code=0, began=0, ended=1800)
    left = FolderState(known=True, records={0: TaskRecord(143, 0, 900), 1: record})
    expected = JobStatus(JobState.RUNNING, Decimal("1.500"), parts_completed=1)
    assert combined_status(3, seen, left, parts_per_node=1) == expected


def test_a_part_without_any_state_is_lost() -> None:
    """Part 0 is known to Slurm, part 1 by its record, and part 2 by neither, unless it has not begun."""
    seen = [ReportedTask(1, NAME, 0, ("RUNNING",))]
    left = FolderState(known=True, records={1: TaskRecord(0, 0, 1)})
    assert is_lost(3, seen, left)
    assert not is_lost(2, seen, left)
    waiting = ReportedTask(1, NAME, None, ("PENDING",))
    assert not is_lost(3, [*seen, waiting], left)
    assert reports_all_parts(1, [*seen, waiting])
    assert not reports_all_parts(2, [*seen, waiting])


def test_parts_that_share_a_node_share_its_hours() -> None:
    seen = [ReportedTask(1, NAME, 0, ("COMPLETED",), 3600)]
    left = FolderState(known=True, records={1: TaskRecord(0, 0, 3600)})
    assert combined_status(2, seen, left, parts_per_node=4).node_hours == Decimal("0.500")


def test_an_unknown_job_is_rejected() -> None:
    assert isinstance(combined_status(1, [], FolderState(known=False), 1), RunnerRefused)


def test_untrusted_text_is_sanitised_for_the_log() -> None:
    assert single_line("a\n\x1b[31mb\t c ") == "a [31mb c"
    assert len(single_line("x" * 500)) == 200


def test_only_what_will_never_do_is_refused() -> None:
    assert isinstance(
        submission_error("Requested time limit is invalid (missing or exceeds some limit)"), RunnerRefused
    )
    assert isinstance(submission_error("Invalid partition name specified"), RunnerUnavailable)


def test_a_controller_that_is_away_has_rejected_nothing() -> None:
    message = (
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    )
    found = submission_error(message)
    assert isinstance(found, RunnerUnavailable)
    assert "does not respond" in str(found)


def test_secrets_of_the_environment_stay_behind() -> None:
    variables = {"PATH": "/bin", "ADMIN_TOKEN": "x", "PLATFORM_SECRET_KEY": "x", "HF_TOKEN": "x"}
    assert environment(variables) == {"PATH": "/bin"}
