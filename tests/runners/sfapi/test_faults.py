"""A Superfacility API that goes wrong: nothing is lost, and nothing is computed twice."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.runners.following import unavailable
from tests.runners.sfapi.conftest import MakeRunner, handle, job
from tests.runners.sfapi.superfacility import Answer, HangUp, Stall, Superfacility, Trickle
from tests.runners.sfapi.superfacility.faults import Behaviour

from collidium.contracts.runner import JobState, JobStatus, Runner, RunnerRefused, RunnerUnavailable

JSON = "application/json"
BEHAVIOURS: tuple[Behaviour, ...] = (
    Answer(500),
    Answer(502),
    Answer(429, '{"detail": "slow down"}', JSON),
    Answer(200),
    Answer(200, "", JSON),
    Answer(200, "null", JSON),
    Answer(200, '{"status": ["OK"], "output": {"0": "row"}}', JSON),
    Answer(200, '{"status": "ERROR", "output": [], "error": "slurmdbd is away"}', JSON),
    HangUp(),
)
ASKS: dict[str, Callable[[Runner, str, Path], Awaitable[object]]] = {
    "submit": lambda runner, submitted, directory: runner.submit(job("another")),
    "find": lambda runner, submitted, directory: runner.find("r1"),
    "poll": lambda runner, submitted, directory: runner.poll(submitted),
    "cancel": lambda runner, submitted, directory: runner.cancel(submitted),
    "collect": lambda runner, submitted, directory: runner.collect(submitted, directory, 2**30),
}


def completed(api: Superfacility) -> str:
    """A job that has ended, with output."""
    part = api.scratch / "r1" / "0"
    part.mkdir(parents=True)
    (part / "particles.parquet").write_text("a table")
    return handle(api.add_job("collidium-r1", state="COMPLETED").id)


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
async def test_it_is_not_available_now_and_later_it_is(
    ask: Callable[[Runner, str, Path], Awaitable[object]], api: Superfacility, runner: Runner, tmp_path: Path
) -> None:
    done = completed(api)
    for behaviour in BEHAVIOURS:
        api.misbehave(behaviour, where="/api/", times=-1)
        with pytest.raises(RunnerUnavailable, match="the batch API"):
            await ask(runner, done, tmp_path)
        api.behave()
    await ask(runner, done, tmp_path)


async def test_a_token_endpoint_that_goes_wrong(api: Superfacility, runner: Runner) -> None:
    for behaviour in BEHAVIOURS:
        api.misbehave(behaviour, where="/token")
        with pytest.raises(RunnerUnavailable, match="gave no access token"):
            await runner.find("r1")
    assert await runner.find("r1") is None


@pytest.mark.parametrize("where", ["/utilities/ls", "/utilities/download"])
async def test_output_is_not_taken_from_nonsense(
    where: str, api: Superfacility, runner: Runner, tmp_path: Path
) -> None:
    done = completed(api)
    for behaviour in BEHAVIOURS:
        api.misbehave(behaviour, where=where)
        with pytest.raises(RunnerUnavailable):
            await runner.collect(done, tmp_path, 2**30)
    (file,) = await runner.collect(done, tmp_path, 2**30)
    assert file.read_text() == "a table"


async def test_a_file_that_arrives_cut_is_not_taken(
    api: Superfacility, runner: Runner, tmp_path: Path
) -> None:
    done = completed(api)
    cut = json.dumps({"status": "OK", "file": "YSB0", "is_binary": True, "error": None})
    api.misbehave(Answer(200, cut, JSON), where="/utilities/download")
    with pytest.raises(RunnerUnavailable, match=r"particles\.parquet arrived incomplete"):
        await runner.collect(done, tmp_path, 2**30)
    assert not (tmp_path / "particles.parquet").exists()


async def test_what_is_fetched_stops_with_the_first_failure(
    api: Superfacility, runner: Runner, tmp_path: Path
) -> None:
    """Or the rest would go on writing while it is collected again."""
    done = completed(api)
    (api.scratch / "r1" / "0" / "tracks.parquet").write_text("another")
    api.misbehave(Stall(), where="/download/perlmutter/" + str(api.scratch / "r1/0/tracks.parquet"))
    api.misbehave(Answer(500), where="/download/perlmutter/" + str(api.scratch / "r1/0/particles.parquet"))
    with pytest.raises(RunnerUnavailable, match="answered 500"):
        # Far less than the other call would wait for its answer.
        async with asyncio.timeout(10):
            await runner.collect(done, tmp_path, 2**30)
    # A call without a waiter ends at its own deadline.
    going_on = {task for task in asyncio.all_tasks() if "HttpClient._exchange" not in repr(task)}
    assert going_on == {asyncio.current_task()}
    api.behave()
    assert len(await runner.collect(done, tmp_path, 2**30)) == 2


# -- submissions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "where"), [("POST", "/compute/jobs"), ("GET", "/tasks/")])
async def test_a_lost_answer_loses_no_job_and_makes_no_second(
    method: str, where: str, api: Superfacility, runner: Runner
) -> None:
    for number, behaviour in enumerate(BEHAVIOURS):
        api.misbehave(behaviour, method=method, where=where, acts=True)
        submitted = await runner.submit(job(f"r{number}"))
        assert len(api.batch.jobs) == number + 1
        assert submitted == handle(max(api.batch.jobs), f"r{number}")
        assert await runner.submit(job(f"r{number}")) == submitted
    assert api.count("POST", "/compute/jobs") == len(BEHAVIOURS)


async def test_a_rejected_submission_is_sent_again_on_retry(api: Superfacility, runner: Runner) -> None:
    for behaviour in BEHAVIOURS:
        api.misbehave(behaviour, method="POST", where="/compute/jobs")
        with pytest.raises(RunnerUnavailable, match=r"the batch API|not take the job"):
            await runner.submit(job())
    assert not api.batch.jobs
    await runner.submit(job())
    assert len(api.batch.jobs) == 1


async def test_no_answer_at_all_is_waited_for_no_longer_than_set(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    runner = make_runner(sfapi_call_seconds=0.5)
    api.misbehave(Stall(), method="POST", where="/compute/jobs", acts=True)
    submitted = await runner.submit(job())
    assert submitted == handle(next(iter(api.batch.jobs)))
    api.misbehave(Stall(), method="GET", where="/compute/jobs")
    with pytest.raises(RunnerUnavailable, match=r"did not answer GET compute/jobs in 0\.5 s"):
        await runner.poll(submitted)


async def test_a_job_that_was_submitted_twice_is_computed_once(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    runner = make_runner(pipeline_command="sh -c 'sleep 1000' {output}")
    api.routes.twice = 1
    submitted = await runner.submit(job())
    first, second = api.batch.jobs.values()
    assert submitted == handle(first.id)
    assert await runner.find("r1") == submitted
    assert second.tasks[0].state.startswith("CANCELLED")
    assert (await runner.poll(submitted)).state in (JobState.QUEUED, JobState.RUNNING)


async def test_a_duplicate_job_is_stopped_on_a_later_attempt(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    runner = make_runner(pipeline_command="sh -c 'sleep 1000' {output}")
    api.routes.twice = 1
    api.misbehave(Answer(200), method="DELETE")
    with pytest.raises(RunnerUnavailable, match="response to a cancellation is invalid"):
        await runner.submit(job())
    first, second = api.batch.jobs.values()
    assert await runner.submit(job()) == handle(first.id)
    assert second.tasks[0].state.startswith("CANCELLED")


async def test_one_process_that_is_asked_twice_at_once_submits_once(
    api: Superfacility, runner: Runner
) -> None:
    first, second = await asyncio.gather(runner.submit(job()), runner.submit(job()))
    assert first == second
    assert api.count("POST", "/compute/jobs") == 1


async def test_a_job_that_is_not_listed_yet_has_all_its_parts(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    runner = make_runner(sfapi_events_per_part=1)
    nothing = Answer(200, '{"status": "OK", "output": []}', JSON)
    api.misbehave(nothing, method="GET", where="/compute/jobs", times=4)
    submitted = await runner.submit(job(events=3))
    assert submitted == handle(next(iter(api.batch.jobs)), parts=3)


async def test_two_processes_that_submit_at_once_agree_on_one_job(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    """The second looks before the first has submitted, and submits as well."""
    lasting = "sh -c 'sleep 1000' {output}"
    runner, other = (make_runner(pipeline_command=lasting) for _ in range(2))
    api.misbehave(Answer(200, '{"status": "OK", "output": []}', JSON), where="/compute/jobs", times=2)
    rival = api.add_job("collidium-r1", state="RUNNING")
    assert await runner.submit(job()) == handle(rival.id)
    _, late = api.batch.jobs.values()
    assert late.tasks[0].state.startswith("CANCELLED")
    assert await other.submit(job()) == handle(rival.id)


async def test_a_submission_without_a_response_is_found_by_its_name(
    api: Superfacility, make_runner: MakeRunner
) -> None:
    api.routes.task_asks = 1000
    runner = make_runner(sfapi_submit_seconds=0.3)
    submitted = await runner.submit(job())
    (batch_job,) = api.batch.jobs.values()
    assert submitted == handle(batch_job.id)


async def test_a_submission_that_takes_a_while(api: Superfacility, runner: Runner) -> None:
    api.routes.task_asks = 1
    submitted = await runner.submit(job())
    assert submitted == handle(next(iter(api.batch.jobs)))


async def test_what_operators_can_mend_is_tried_again(api: Superfacility, make_runner: MakeRunner) -> None:
    with unavailable("rejected the job", operators="Invalid account"):
        await make_runner(sfapi_account="another").submit(job())


async def test_what_will_never_run_is_refused(api: Superfacility, runner: Runner) -> None:
    api.batch.refusal = "sbatch: error: Batch job submission failed: Requested time limit is invalid"
    with pytest.raises(RunnerRefused, match="time limit is invalid"):
        await runner.submit(job())


# -- tokens and addresses -----------------------------------------------------------------------------


async def test_an_expired_token_is_replaced_and_the_call_repeated(api: Superfacility, runner: Runner) -> None:
    assert await runner.find("r1") is None
    assert len(api.tokens.issued) == 1
    api.tokens.revoke_all()
    submitted = await runner.submit(job())
    assert len(api.tokens.issued) == 2
    api.tokens.revoke_all()
    assert await runner.find("r1") == submitted


async def test_callers_waiting_for_one_token_fail_together(api: Superfacility, runner: Runner) -> None:
    """Or a token endpoint that stalls would stall each of them in turn."""
    api.misbehave(HangUp(), where="/token")
    found = await asyncio.gather(*(runner.find(f"r{n}") for n in range(5)), return_exceptions=True)
    assert [type(error) for error in found] == [RunnerUnavailable] * 5
    assert await runner.find("r1") is None


async def test_a_token_is_renewed_before_it_expires(
    tmp_path: Path, api: Superfacility, runner: Runner
) -> None:
    api.tokens.lifetime = 30  # less than the minute that the library keeps clear of the end
    await runner.find("r1")
    await runner.find("r1")
    assert len(api.tokens.issued) > 1
    assert api.count("GET", "/compute/jobs") == 4


async def test_a_rejected_token_is_not_retried_forever(api: Superfacility, runner: Runner) -> None:
    api.misbehave(Answer(401, '{"detail": "no"}', JSON), where="/compute/jobs", times=-1)
    with pytest.raises(RunnerUnavailable, match="answered 401"):
        await runner.find("r1")
    assert api.count("GET", "/compute/jobs") == 2


async def test_an_unreachable_address(unused_tcp_port: int, make_runner: MakeRunner) -> None:
    unused = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(RunnerUnavailable, match="did not answer"):
        await make_runner(sfapi_url=unused).find("r1")
    with pytest.raises(RunnerUnavailable, match="gave no access token"):
        await make_runner(sfapi_token_url=unused).find("r1")


async def test_an_answer_that_trickles_is_given_up(api: Superfacility, make_runner: MakeRunner) -> None:
    """Each byte comes in time, the answer never does."""
    runner = make_runner(sfapi_call_seconds=5)
    await runner.find("r1")  # the token, for which a busy machine needs some of the time
    api.misbehave(Trickle(), where="/jobs")
    with pytest.raises(RunnerUnavailable, match=r"in 5 s"):
        await runner.find("r1")
    api.misbehave(Trickle(), where="/token")
    with pytest.raises(RunnerUnavailable, match="gave no access token: TimeoutError"):
        await make_runner(sfapi_call_seconds=0.5).find("r1")


# -- jobs ---------------------------------------------------------------------------------------------


async def test_a_job_that_vanished_is_refused_alone(api: Superfacility, runner: Runner) -> None:
    gone, there = (api.add_job(f"collidium-{name}", state="RUNNING") for name in ("r1", "r2"))
    api.vanish(gone.id)
    handles = [handle(gone.id, "r1"), handle(there.id, "r2")]
    statuses = await runner.poll_many(handles)
    assert isinstance(statuses[handles[0]], RunnerRefused)
    assert statuses[handles[1]] == await runner.poll(handles[1])
    assert (await runner.poll(handles[1])).state == JobState.RUNNING


async def test_a_job_that_accounting_does_not_know_yet_is_in_the_queue(
    api: Superfacility, runner: Runner
) -> None:
    waiting = api.add_job("collidium-r1")
    api.misbehave(Answer(200, '{"status": "OK", "output": []}', JSON), where="/compute/jobs")
    assert await runner.poll(handle(waiting.id)) == JobStatus(JobState.QUEUED)


async def test_answers_out_of_order_and_repeated(api: Superfacility, runner: Runner) -> None:
    jobs = [api.add_job(f"collidium-r{number}", tasks=3, state="COMPLETED") for number in range(20)]
    for batch_job in jobs[::2]:
        batch_job.tasks[1].state = "RUNNING"
    api.routes.shuffled = True
    handles = {handle(batch_job.id, f"r{number}", 3): number for number, batch_job in enumerate(jobs)}
    statuses = await runner.poll_many([*handles, *handles])
    for text, number in handles.items():
        status = statuses[text]
        assert isinstance(status, JobStatus)
        assert status.state == (JobState.COMPLETED if number % 2 else JobState.RUNNING)


async def test_an_unknown_state_is_followed_and_logged(
    api: Superfacility, runner: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    strange = api.add_job("collidium-r1", state="TELEPORTING")
    with caplog.at_level(logging.WARNING):
        status = await runner.poll(handle(strange.id))
    assert status.state == JobState.UNKNOWN
    assert status.reason == "the batch system reports 'TELEPORTING'"
    assert "TELEPORTING" in caplog.text
