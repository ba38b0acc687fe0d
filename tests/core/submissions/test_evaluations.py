"""Evaluations of models: queue, outcomes, and recovery from killed processes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import failpoints, killing
from tests.core.submissions.conftest import Prepared
from tests.counts import LONG
from tests.killing import Killer
from tests.waiting import eventually_async
from tortoise.timezone import now

from collidium import accounts
from collidium.challenges import truth_in_use
from collidium.challenges.models import Arrival, Challenge
from collidium.contracts.storage import StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.database import on_commit, transactional
from collidium.database.leases import LeaseLost
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Conflict, Forbidden, InvalidInput, PaymentRequired, TooManyRequests, Unavailable
from collidium.inference import timing
from collidium.inference.cores import timing_core
from collidium.inference.messages import Code
from collidium.inference.running import predict
from collidium.model_runs import model_files, model_queue
from collidium.model_runs.models import Evaluation, ModelFile
from collidium.organising import closing
from collidium.platform import Platform
from collidium.submissions import (
    admissions,
    model_runner,
    reading,
    reruns,
    rescoring,
    rulings,
    scores,
    submit,
)
from collidium.submissions.models import Rescoring, Scoring, Submission
from collidium_tasks import tracking_small

from . import models
from .broken_tracking import Broken
from .test_bans import waits_for_a_lock

EVENTS = EventRange(3, 5)
TRACKML = "trackml_weighted_efficiency"
TASKS = ("tracking", "tracking_latency")
#: One process is killed at each.
AGAIN = ("evaluate.claimed", "evaluate.predicted", "evaluate.again_kept", "evaluate.kept")
NAMES = sorted(
    name for name in failpoints.NAMES if name.startswith("evaluate.") and name != "evaluate.again_kept"
)


@pytest.fixture
def chosen(prepared: Prepared, tmp_path: Path) -> Iterator[dict[str, Any]]:
    with prepared(tmp_path, *TASKS) as chosen:
        yield chosen


@pytest.fixture
async def platform(chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    for name, value in models.PATIENT.items():
        monkeypatch.setattr(timing, name, value)
    async with models.opened(chosen) as platform:
        yield platform


async def test_a_kill_anywhere_loses_and_duplicates_nothing(
    platform: Platform, chosen: dict[str, Any]
) -> None:
    lives = {}
    for number, name in enumerate(NAMES):
        model = models.crashing() if name == "evaluate.failed" else models.layers(number)
        to = "tracking_latency" if name == "evaluate.timed" else "tracking"
        evaluation_id = await models.send(platform, model, to=to)
        lives[evaluation_id] = name
        codes = models.kill_each({evaluation_id: name}, chosen)
        assert codes == [-signal.SIGKILL], name
    await Evaluation.filter(turn__gte=0).update(due_at=now())
    await models.run_all(platform)
    rows = {row.id: row for row in await Evaluation.all()}
    ends = {
        name: rows[evaluation_id].code or rows[evaluation_id].state for evaluation_id, name in lives.items()
    }
    assert ends == {name: "crashed" if name == "evaluate.failed" else "scored" for name in NAMES}
    submissions = {row.evaluation_id for row in await Submission.all()}
    assert submissions == {one for one, name in lives.items() if name != "evaluate.failed"}
    assert not await Arrival.all().exists()


async def test_scores_are_kept_exactly_and_shown_to_a_tenth(platform: Platform) -> None:
    evaluation_id = await models.scored(platform, models.layers())
    row = await Submission.get(evaluation_id=evaluation_id)
    exact = (await Scoring.get(submission_id=row.id)).scores
    for name, error in (row.uncertainties or {}).items():
        assert abs(row.scores[name] - exact[name]) <= error / 10
    shown = await reading.find(platform, row.id)
    assert (shown.sha256, shown.rows, shown.model and shown.model.nodes) == (
        _hash(models.layers()),
        None,
        1,
    )


@pytest.mark.parametrize(
    ("error", "shown"), [(0.0, 0.123456), (0.01, 0.123), (0.0099, 0.1235), (0.5, 0.1), (30, 0.0)]
)
def test_scores_are_rounded_to_a_step(error: float, shown: float) -> None:
    assert scores._to_a_tenth(0.123456, error) == shown


@pytest.mark.parametrize("error", [0.0, -1.0, 5e-324, 1e-12, math.nan, math.inf])
def test_a_model_does_not_choose_the_digits_of_its_score(error: float) -> None:
    """Counted metrics are exact."""
    card = tracking_small.TrackingSmallTask().card
    row = Submission(evaluation_id="0" * 32)
    exact = {TRACKML: 0.123456789, "n_params": 1234567.0}
    made = scores.shown(card, row, exact, {TRACKML: error}, ["one"])
    assert made == {
        "scores": {TRACKML: 0.1235, "n_params": 1234567.0},
        "uncertainties": {TRACKML: error if error == math.inf else 0.0},
        "warnings": [],
    }


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, 1e-10, 1.0, 1e300, 1.7976931348623157e308])
@pytest.mark.parametrize("error", [0.0, 5e-324, 1e-10, 1e300, 1.7976931348623157e308])
def test_rounding_raises_for_no_number(value: float, error: float) -> None:
    for floor in (0, 1e-4):
        scores._to_a_tenth(value, error, floor)
    for odd in (math.nan, math.inf, -math.inf):
        assert str(scores._to_a_tenth(odd, error, 1e-4)) == str(odd)


@pytest.mark.one_database
async def test_speed_is_measured_by_the_platform(platform: Platform) -> None:
    evaluation_id = await models.scored(platform, models.layers(), to="tracking_latency")
    row = await Submission.get(evaluation_id=evaluation_id)
    assert row.verified_at == row.submitted_at
    (seed,) = {block["seed"] for block in (await model_queue.find(evaluation_id)).timed}
    assert seed != int(evaluation_id, 16)
    per_event = row.scores["wallclock_s"] / len(EVENTS)
    assert per_event == pytest.approx(row.model["seconds"], rel=0.1)
    relative = row.model["seconds_error"] / row.model["seconds"]
    assert row.uncertainties["wallclock_s"] / row.scores["wallclock_s"] == pytest.approx(relative, rel=0.1)


@pytest.mark.one_database
async def test_a_machine_that_times_runs_other_models_meanwhile(platform: Platform) -> None:
    """Waiting for the core counts no attempt and does not block the process."""
    timed = await models.send(platform, models.layers(), to="tracking_latency")
    with timing_core():
        for _ in range(model_queue.ATTEMPTS + 1):
            await model_runner.evaluate(platform, await models.claimed())
    row = await model_queue.find(timed)
    assert (row.state, row.timed, row.lease, row.attempts) == ("running", [], "", 0)
    await models.run_all(platform)
    assert (await model_queue.find(timed)).state == "scored"


@pytest.mark.one_database
async def test_what_a_model_does_to_itself_is_its_code(platform: Platform) -> None:
    broken = await models.send(platform, b"no model")
    crashed = await models.send(platform, models.crashing())
    hostile = models.layers().replace(b"Add", b"\x1b\0!")  # its name is shown
    unknown = await models.send(platform, hostile)
    await models.run_all(platform)
    rows = [await model_queue.find(one) for one in (broken, crashed, unknown)]
    ends = [(row.state, row.code) for row in rows]
    assert ends == [("failed", "not_onnx"), ("failed", "crashed"), ("failed", "operator")]
    assert model_queue.view(rows[1]).reason == Code.CRASHED.text, "and nothing else"
    assert model_queue.view(rows[-1]).reason == f"{Code.OPERATOR.text}   !"
    assert not await Submission.all().exists()


async def test_problems_are_listed_before_anything_is_kept(platform: Platform) -> None:
    manifest = 'contract = 2\ntask = "tracking"\nbatch = "all"\ninputs = {}\noutputs = {}\n'
    with pytest.raises(InvalidInput) as refused:
        await models.send(platform, models.layers(), manifest=manifest)
    assert {"contract", "batch", "outputs"} <= {error["field"] for error in refused.value.errors}
    assert not await Evaluation.all().exists()


async def test_models_count_for_the_quota_and_are_not_kept_past_it(platform: Platform) -> None:
    await Challenge.filter(name="tracking").update(submissions_per_day=2)
    first = await models.send(platform, models.layers(0))
    assert await models.send(platform, models.layers(0)) == first
    await models.send(platform, models.layers(1))
    await model_queue.cancel(await model_queue.find(first))
    with pytest.raises(TooManyRequests):
        await models.send(platform, models.layers(2))
    assert not await _is_stored(platform, models.layers(2))
    with pytest.raises(Conflict):
        await model_queue.cancel(await model_queue.find(first))


async def test_a_cancelled_model_is_not_scored(platform: Platform) -> None:
    evaluation_id = await models.send(platform, models.layers())
    taken = await models.claimed()
    assert taken.state == "checking"
    await model_queue.cancel(await model_queue.find(evaluation_id))
    with pytest.raises(LeaseLost):
        await model_queue.renew(taken, 60, 0)
    with pytest.raises(LeaseLost):
        await model_queue.mark_scored(taken, "0" * 32, "", "")
    assert (await model_queue.find(evaluation_id)).state == "cancelled"
    assert not await Arrival.all().exists()


@pytest.mark.one_database
async def test_a_run_that_has_ended_stops_its_sandbox(platform: Platform) -> None:
    await models.send(platform, models.layers())
    run = model_runner._Run(platform, await models.claimed())
    limits = run._limits
    assert limits.total_seconds == platform.settings.model_seconds
    assert limits.on_wait is not None
    limits.on_wait()
    run.stopped = True
    with pytest.raises(LeaseLost):
        limits.on_wait()


@pytest.mark.one_database
async def test_a_machine_that_confines_no_model_runs_none(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The model waits for another machine; attempts of this one do not count."""
    monkeypatch.setattr(model_runner, "CONFINED_BY", ("network", "moods"))
    strict = replace(platform, settings=platform.settings.model_copy(update={"model_unconfined": False}))
    evaluation_id = await models.send(platform, models.layers())
    for _ in range(model_queue.ATTEMPTS + 1):
        await model_runner.evaluate(strict, await models.claimed())
    row = await model_queue.find(evaluation_id)
    assert (row.state, row.facts, row.lease) == ("checking", None, "")
    assert "keeps no model from: moods" in caplog.text
    allowed = platform.settings.model_copy(update={"model_unconfined": True})
    await models.run_all(replace(platform, settings=allowed))
    assert (await model_queue.find(evaluation_id)).state == "scored"


@pytest.mark.parametrize(("events", "done", "shown"), [(100, 57, 50), (100, 100, 100), (0, 0, 0)])
def test_a_run_is_shown_in_tenths_and_minutes(events: int, done: int, shown: int) -> None:
    """Also for failed models, which choose at which event and when they fail."""
    moment = datetime(2026, 5, 1, 12, 0, 30, 7, UTC)
    times = {f"{name}_at": moment + timedelta(minutes=1) for name in ("checking", "running", "ended")}
    fields = dict.fromkeys(("challenge", "task", "hub_username", "sha256"), "")
    row = Evaluation(
        **fields, size_bytes=0, state="failed", events=events, events_done=done, received_at=moment, **times
    )
    made = model_queue.view(row)
    assert made.events_done == shown
    assert {made.checking_at, made.running_at, made.ended_at} == {datetime(2026, 5, 1, 12, 1, tzinfo=UTC)}


async def test_a_banned_account_gets_no_scores(platform: Platform) -> None:
    evaluation_id = await models.send(platform, models.layers())
    await accounts.set_banned("ada", True)
    await models.run_all(platform)
    assert (await model_queue.find(evaluation_id)).code == "banned"
    assert not await Submission.all().exists()


async def test_a_process_that_is_lost_too_often_ends_it(platform: Platform) -> None:
    evaluation_id = await models.send(platform, models.layers())
    for _ in range(model_queue.ATTEMPTS):
        await models.claimed()
    await Evaluation.all().update(due_at=now())
    assert await model_queue.claim({}, 60) is None
    row = await model_queue.find(evaluation_id)
    assert (row.state, row.code) == ("failed", "interrupted")


async def test_models_that_fail_the_platform_count_after_three(platform: Platform) -> None:
    """One that takes the machine's memory ends so, whatever its file is; it is refunded each time."""
    await Challenge.filter(name="tracking").update(submissions_per_day=1)
    costly = models.priced(platform, "1")
    await accounts.recognise("ada", signup_grant=Decimal(1))
    for number in range(model_queue.FREE_FAILURES + 1):
        await models.send(costly, models.layers(number))
        await model_queue.mark_failed(await models.claimed(), model_queue.PLATFORM_FAILED)
        assert (await accounts.find("ada")).credits == 1
    with pytest.raises(TooManyRequests):
        await models.send(costly, models.layers(9))


@pytest.mark.one_database
@pytest.mark.parametrize("_", range(20 if LONG else 1))
async def test_a_worker_killed_while_a_model_is_scored(platform: Platform, _: int) -> None:
    evaluation_id = await models.send(platform, models.layers())
    with Killer(os.getpid()) as killer:
        await models.run_all(platform)
    assert len(killer.killed) == 1
    assert (await model_queue.find(evaluation_id)).state == "scored"


@pytest.mark.one_database
@pytest.mark.parametrize("step", ["check", "predict"])
@pytest.mark.parametrize("_", range(20 if LONG else 1))
async def test_a_model_killed_from_outside_is_run_again(platform: Platform, step: str, _: int) -> None:
    seen: dict[int, None] = {}

    def of_step(process: int) -> list[int]:
        """The first sandbox checks the model, the second one runs it."""
        seen.update(dict.fromkeys(killing.models(process)))
        return list(seen)[step == "predict" :]

    evaluation_id = await models.send(platform, models.layers())
    with Killer(os.getpid(), find=of_step) as killer:
        await model_runner.evaluate(platform, await models.claimed())
    assert len(killer.killed) == 1
    row = await model_queue.find(evaluation_id)
    assert (row.ended_at, row.code, row.attempts) == (None, None, 1)
    await models.run_all(platform)
    assert (await model_queue.find(evaluation_id)).state == "scored"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("killed", marks=pytest.mark.one_database),
        "model_killed",
        pytest.param("raises", marks=pytest.mark.one_database),
    ],
)
async def test_a_platform_that_cannot_score_a_model_refunds_it(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    await Challenge.filter(name="tracking").update(submissions_per_day=1)
    costly = models.priced(platform, "3")
    await accounts.recognise("ada", signup_grant=Decimal(3))
    evaluation_id = await models.send(costly, models.layers())
    assert (await accounts.find("ada")).credits == 0
    if fault == "raises":
        monkeypatch.setitem(platform.tasks.things, "tracking", Broken())
    find = killing.models if fault == "model_killed" else killing.workers
    with Killer(os.getpid(), 0 if fault == "raises" else inf, find=find):
        for number in range(model_queue.ATTEMPTS):
            row = await model_queue.find(evaluation_id)
            state = "checking" if fault == "model_killed" else "running"
            assert (row.state, row.code) == (state if number else "received", None)
            await model_runner.evaluate(costly, await models.claimed())
    row = await model_queue.find(evaluation_id)
    assert (row.state, row.code) == ("failed", "platform_failed")
    assert "The platform failed to score it" in (model_queue.view(row).reason or "")
    assert (await accounts.find("ada")).credits == 3
    monkeypatch.undo()
    again = await models.send(costly, models.layers(1))
    await models.run_all(costly)
    assert (await model_queue.find(again)).state == "scored"


@pytest.mark.one_database
async def test_models_and_rescoring_wait_for_storage_that_is_away(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No attempt counts meanwhile."""
    evaluation_id = await models.send(platform, models.layers())
    with monkeypatch.context() as patched:
        patched.setattr(platform.storage, "get", _away)
        for _ in range(model_queue.ATTEMPTS + 1):
            await model_runner.evaluate(platform, await models.claimed())
    await models.run_all(platform)
    assert (await model_queue.find(evaluation_id)).state == "scored"

    await Submission.all().update(scorer_version="1")
    await Scoring.all().update(scorer_version="1")
    by = {"actor": "admin", "http_request_id": "", "pays": False}
    await rescoring.order(platform, "tracking", percent=None, apply=False, **by)
    with monkeypatch.context() as patched:
        patched.setattr(platform.storage, "get", _away)
        ordered = await rescoring._claim(0)
        assert ordered is not None
        await rescoring._work(platform, ordered)
    seen = await rescoring.find("tracking")
    assert (seen.state, list(seen.waiting.values())) == ("waiting", ["not now"])
    assert await rescoring._claim(60) is None, "after a pause"
    await Rescoring.all().update(leased_until=now())
    ordered = await rescoring._claim(60)
    assert ordered is not None
    await rescoring._work(platform, ordered)
    ended = await Rescoring.get(challenge="tracking")
    assert (ended.problem, ended.unscored, ended.done) == ("", {}, 1)


async def _away(key: str, path: Path) -> None:
    raise StorageUnavailable("not now")


async def test_a_challenge_ends_when_its_models_have_been_scored(platform: Platform) -> None:
    evaluation_id = await models.send(platform, models.layers())
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    assert not await closing.end(platform, "tracking")
    await Evaluation.all().update(received_at=now() - timedelta(days=2))
    await models.run_all(platform)
    assert (await model_queue.find(evaluation_id)).state == "scored"
    assert await closing.end(platform, "tracking")


async def close_and_run(platform: Platform) -> None:
    """Close the challenge; its results wait for the models."""
    await closing.close(platform, "tracking", actor="test", http_request_id="")
    assert not await closing.end(platform, "tracking")
    await models.run_all(platform)
    assert await closing.end(platform, "tracking")


@pytest.mark.one_database
async def test_final_events_are_read_once_at_the_end(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only by the models that count; predictions before are of public events. Scores are rounded."""
    read = []
    monkeypatch.setattr(
        model_runner, "predict", lambda *given, **options: _noted(read, predict(*given, **options))
    )
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    await Challenge.filter(name="tracking").update(final_submissions=1)
    ids = [await models.send(platform, models.layers(number)) for number in (0, 1)]
    await models.run_all(platform)
    part = (await Challenge.get(name="tracking")).truth_version
    (public,), (final,) = (one.events_of(EVENTS) for one in (part, part.final))
    assert read == [{public.start}, {public.start}]
    assert not await Scoring.exists(truth_version=part.final)
    before = await Submission.get(evaluation_id=ids[0])
    await close_and_run(platform)
    assert read[2:] == [{final.start}]
    kept = {row.evaluation_id: row for row in await Submission.all()}
    counts, card = kept[ids[0]], platform.tasks.find("tracking").card
    exact = await Scoring.get(submission_id=counts.id, truth_version=counts.truth_version)
    shown = scores.shown(card, counts, exact.scores, exact.uncertainties, [])
    assert (counts.scores, counts.rank_score) == (shown["scores"], counts.scores[TRACKML])
    (earlier,) = (await reading.find(platform, counts.id)).earlier_scores
    assert earlier.scores == before.scores
    assert [kept[id_].standing for id_ in ids] == ["ranked", "not_final"]
    assert [kept[id_].truth_version for id_ in ids] == [str(part.final), str(part)]
    assert sum(row.represents for row in kept.values()) == 1
    again = await rescoring.rescore(platform, "tracking", apply=True, actor="test")
    assert [change.problem for change in again.submissions if change.rank] == [None]


def _noted(read: list[set[int]], tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    ids: set[int] = set()
    read.append(ids)
    for table in tables:
        ids.update(table["event_id"].unique().to_pylist())
        yield table


@pytest.mark.one_database
async def test_a_model_that_fails_at_the_end_has_no_final_score(platform: Platform) -> None:
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    first, second = [await models.send(platform, models.layers(n), of=f"user{n}") for n in (0, 1)]
    await models.run_all(platform)
    await closing.close(platform, "tracking", actor="test", http_request_id="")
    assert not await closing.end(platform, "tracking")
    run = await Evaluation.get(again=True, participant=(await model_queue.find(first)).participant)
    taken = await models.claimed()
    assert taken.id == run.id
    await model_queue.mark_failed(taken, "memory")
    assert not await closing.end(platform, "tracking"), "the other one is not run yet"
    await models.run_all(platform)
    assert await closing.end(platform, "tracking")
    rows = {row.evaluation_id: await reading.find(platform, row.id) for row in await Submission.all()}
    assert rows[first].unranked == "its model has no scores on the final events"
    assert rows[second].unranked is None
    assert model_queue.view(await model_queue.find(run.id)).code == "memory"
    with pytest.raises(Conflict):
        await model_queue.operate(run.id, "rerun", actor="test", http_request_id="")
    with pytest.raises(Conflict):
        await closing.reopen(platform, "tracking", None, actor="test", http_request_id="")


async def test_a_choice_stands_once_final_events_are_read(platform: Platform) -> None:
    """Otherwise a participant could have each model run on them and choose by the result."""
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    await Challenge.filter(name="tracking").update(final_submissions=1)
    for number in (0, 1):
        await models.send(platform, models.layers(number))
    await models.run_all(platform)
    first, second = await Submission.all().order_by("submitted_at")
    ada = await accounts.find("ada")
    await closing.close(platform, "tracking", actor="test", http_request_id="")
    await rulings.choose(ada, first.id, True)
    assert not await closing.end(platform, "tracking")
    for row, chosen in ((first, False), (second, True)):
        with pytest.raises(Conflict):
            await rulings.choose(ada, row.id, chosen)
    await models.run_all(platform)
    assert await closing.end(platform, "tracking")
    assert {row.submission_id for row in await Evaluation.filter(again=True)} == {first.id}


async def test_a_kill_at_the_end_loses_and_repeats_nothing(
    platform: Platform, chosen: dict[str, Any]
) -> None:
    """Kills at each state of a final run, and of the process that queues them."""
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    for number, _ in enumerate(AGAIN):
        await models.send(platform, models.layers(number), of=f"user{number}")
    await models.run_all(platform)
    await closing.close(platform, "tracking", actor="test", http_request_id="")
    assert models.kill_each({models.END: "challenge.finals_queued"}, chosen) == [-signal.SIGKILL]
    assert not await Evaluation.exists(again=True)
    assert not await closing.end(platform, "tracking")
    runs = await Evaluation.filter(again=True).values_list("id", flat=True)
    lives = dict(zip(map(str, runs), AGAIN, strict=True))
    assert models.kill_each(lives, chosen) == [-signal.SIGKILL] * len(AGAIN)
    await Evaluation.filter(turn__gte=0).update(due_at=now())
    await models.run_all(platform)
    assert models.kill_each({models.END: "challenge.before_end"}, chosen) == [-signal.SIGKILL]
    assert await closing.end(platform, "tracking")
    assert await Evaluation.filter(again=True).count() == len(AGAIN)
    assert await Submission.filter(represents=True, standing="ranked").count() == len(AGAIN)
    assert not await Arrival.all().exists()


async def refresh(platform: Platform, events: EventRange) -> str:
    """Replace the counting events; returns the version of the truth."""
    truth = await truth_in_use.import_truth(
        *(platform, "tracking", str(EVENTS_DIRECTORY)), config="ttbar_pu0", events=events, current=False
    )
    await reruns.refresh(platform, "tracking", truth.version, actor="test", http_request_id="")
    return truth.version


@pytest.mark.one_database
async def test_models_are_scored_on_new_hidden_events(platform: Platform) -> None:
    """Older scores are kept, files of predictions lose their ranks, and nothing is paid again."""
    ids = [await models.send(platform, models.layers(n), of=f"user{n}") for n in (0, 1)]
    await models.run_all(platform)
    before = {row.evaluation_id: row for row in await Submission.all()}
    waiting = await models.send(platform, models.layers(2), of="user2")
    balance = (await accounts.find("user0")).credits
    new = await refresh(platform, EventRange(0, 3))
    assert await Evaluation.filter(again=True).count() == 2
    await models.run_all(platform)
    after = {row.evaluation_id: row for row in await Submission.all()}
    assert {row.truth_version for row in after.values()} == {new}
    assert sum(row.represents for row in after.values()) == 3
    assert (await accounts.find("user0")).credits == balance
    shown = await reading.find(platform, after[ids[0]].id)
    assert (shown.unranked, shown.dataset) == (None, "ttbar_pu0")
    (earlier,) = shown.earlier_scores
    assert (earlier.truth_version, earlier.scores) == (
        before[ids[0]].truth_version,
        before[ids[0]].scores,
    )
    assert (await model_queue.find(waiting)).truth_version == new
    with pytest.raises(Conflict):
        await reruns.refresh(platform, "tracking", new, actor="test", http_request_id="")
    with pytest.raises(Conflict):
        await reruns.refresh(platform, "tracking", "0" * 12, actor="test", http_request_id="")


@pytest.mark.one_database
async def test_a_refresh_keeps_what_is_held_back(platform: Platform) -> None:
    """The new events are split, too; runs of an earlier refresh that have not started are cancelled."""
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    evaluation_id = await models.scored(platform, models.layers())
    await refresh(platform, EventRange(0, 3))
    new = await refresh(platform, EventRange(1, 5))
    states = [row.state for row in await Evaluation.filter(again=True).order_by("received_at")]
    assert states == ["cancelled", "received"]
    await models.run_all(platform)
    row = await Submission.get(evaluation_id=evaluation_id)
    assert row.truth_version == f"{new}-public50"
    await close_and_run(platform)
    row = await Submission.get(evaluation_id=evaluation_id)
    assert row.truth_version == f"{new}-final50"


async def test_predictions_sent_as_a_file_keep_their_scores_that_are_held_back(
    platform: Platform, tmp_path: Path
) -> None:
    """Also when they are scored again together with the model's, which has not run on these events."""
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    evaluation_id = await models.scored(platform, models.layers())
    sha256 = (await Submission.get(evaluation_id=evaluation_id)).sha256
    file = tmp_path / "predictions.parquet"
    await platform.storage.get(scores.storage_key(sha256), file)
    eve = await accounts.recognise("eve", signup_grant=Decimal(0))
    async with admissions.admitted(platform, eve, "tracking") as admission:
        predictions = submit.Predictions(file, sha256, file.stat().st_size)
        await submit.submit(platform, admission, predictions, check_claim=models.no_claim)
    before = await kept_scores()
    assert len(before) == 3
    await Scoring.all().delete()
    await Submission.all().update(scorer_version="0")
    await rescoring.rescore(platform, "tracking", apply=True, actor="test")
    assert await kept_scores() == before


async def kept_scores() -> set[tuple[str, str]]:
    """The submission and the version of the truth of all scores."""
    return set(await Scoring.all().values_list("submission_id", "truth_version"))


async def test_models_that_were_not_scored_are_deleted_in_time(platform: Platform) -> None:
    """A scored model is kept, also if it was scored for another account."""
    sent = (b"no model", models.layers(1), models.layers(2))
    for model in sent:
        await models.send(platform, model)
    await models.run_all(platform)
    shared = await Evaluation.get(sha256=_hash(models.layers(1)))
    await Evaluation.filter(id=shared.id).update(state="failed")
    await models.send(platform, models.layers(1), of="grace")
    await model_files.sweep(platform.storage, now() - timedelta(days=1))
    assert len(await model_files.stored_models()) == 3
    await model_files.sweep(platform.storage, now() + timedelta(seconds=1))
    kept = {_hash(models.layers(1)), _hash(models.layers(2))}
    assert set((await model_files.stored_models()).values()) == kept
    assert [await _is_stored(platform, model) for model in sent] == [False, True, True]
    gone = await Evaluation.get(sha256=_hash(b"no model"))
    with pytest.raises(Conflict):
        await model_queue.operate(gone.id, "rerun", actor="test", http_request_id="")
    assert await models.send(platform, b"no model") != gone.id
    assert await _is_stored(platform, b"no model")


def _hash(model: bytes) -> str:
    return hashlib.sha256(model).hexdigest()


async def _is_stored(platform: Platform, model: bytes) -> bool:
    return await platform.storage.exists(model_files.model_key(_hash(model)))


@pytest.mark.parametrize("failpoint", ["receive.stored", "receive.before_commit"])
async def test_a_kill_while_a_model_is_received_leaves_no_file(
    platform: Platform, chosen: dict[str, Any], failpoint: str
) -> None:
    assert models.kill_each({models.SEND: failpoint}, chosen) == [-signal.SIGKILL]
    assert await _is_stored(platform, models.layers())
    assert not await Evaluation.all().exists()
    await model_files.sweep(platform.storage, now())
    assert await _is_stored(platform, models.layers()), "its lease is not over"
    await model_files.sweep(platform.storage, now() + timedelta(days=1))
    assert not await _is_stored(platform, models.layers())


@pytest.mark.parametrize("failpoint", ["sweep.begun", "sweep.deleted"])
async def test_a_sweep_that_is_killed_is_done_again(
    platform: Platform, chosen: dict[str, Any], failpoint: str
) -> None:
    """Nothing is received between a decision to delete a file and its deletion."""
    evaluation_id = await models.send(platform, models.layers())
    await model_queue.cancel(await model_queue.find(evaluation_id))
    assert models.kill_each({models.SWEEP: failpoint}, chosen) == [-signal.SIGKILL]
    assert not (await model_queue.find(evaluation_id)).manifest
    with pytest.raises(Unavailable):
        await models.send(platform, models.layers())
    await model_files.sweep(platform.storage, now() + timedelta(days=1))
    assert not await _is_stored(platform, models.layers())
    assert await models.send(platform, models.layers()) != evaluation_id
    assert await _is_stored(platform, models.layers())


async def test_a_deletion_that_was_killed_does_not_keep_a_model_out(
    platform: Platform, chosen: dict[str, Any]
) -> None:
    await model_queue.cancel(await model_queue.find(await models.send(platform, models.layers())))
    assert models.kill_each({models.SWEEP: "sweep.begun"}, chosen) == [-signal.SIGKILL]
    await ModelFile.filter(deleting_until__not_isnull=True).update(deleting_until=now())
    await models.send(platform, models.layers())
    await model_files.sweep(platform.storage, now() + timedelta(days=1))
    assert await _is_stored(platform, models.layers())


async def test_a_sweep_locks_files_and_no_challenge(
    platform: Platform, caplog: pytest.LogCaptureFixture
) -> None:
    """On PostgreSQL and SQLite alike: no submission of predictions waits for it."""
    for number in range(3):
        await model_queue.cancel(await model_queue.find(await models.send(platform, models.layers(number))))
    with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
        await model_files.sweep(platform.storage, now() + timedelta(days=1))
    statements = [record.getMessage() for record in caplog.records]
    assert sum("DELETE FROM" in text and "model_files" in text for text in statements) == 3
    assert not [text for text in statements if '"challenges"' in text]
    assert not await ModelFile.all().exists()


@pytest.mark.only_on("postgresql")  # transactions of SQLite run one after the other
async def test_a_sweep_keeps_a_model_that_is_queued_again(platform: Platform) -> None:
    evaluation_id = await models.send(platform, models.layers())
    await model_queue.cancel(await model_queue.find(evaluation_id))
    queued, go_on = asyncio.Event(), asyncio.Event()

    @transactional
    async def queue_slowly() -> None:
        await model_queue.operate(evaluation_id, "rerun", actor="test", http_request_id="")
        queued.set()
        await go_on.wait()

    queueing = asyncio.ensure_future(queue_slowly())
    await queued.wait()
    sweeping = asyncio.ensure_future(model_files.sweep(platform.storage, now() + timedelta(days=1)))
    try:
        await eventually_async(waits_for_a_lock, 20)
    finally:
        go_on.set()
    await asyncio.gather(queueing, sweeping)
    row = await model_queue.find(evaluation_id)
    assert (row.state, bool(row.manifest)) == ("received", True)
    assert await platform.storage.exists(model_files.model_key(row.sha256))


class _Observed:
    """A storage that is called in no transaction."""

    def __init__(self, platform: Platform) -> None:
        self._storage = platform.storage
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            self.calls.append(name)
            outside = list[bool]()
            on_commit(lambda: outside.append(True))
            assert outside, f"{name} in a transaction"
            return await getattr(self._storage, name)(*arguments)

        return call


async def test_no_call_of_the_storage_is_in_a_transaction(platform: Platform) -> None:
    """A slow storage would hold the locks of challenges."""
    storage = _Observed(platform)
    slow = replace(platform, storage=storage)
    evaluation_id = await models.send(slow, models.layers())
    await model_queue.cancel(await model_queue.find(evaluation_id))
    await model_files.sweep(slow.storage, now() + timedelta(days=1))
    assert set(storage.calls) == {"put", "delete"}


async def _reproducible(platform: Platform) -> tuple[str, accounts.AccountView]:
    """A scored submission, and its account; there is truth of public events."""
    await models.scored(platform, models.layers())
    await truth_in_use.import_truth(
        *(platform, "tracking", str(EVENTS_DIRECTORY)),
        config="ttbar_pu0",
        events=EventRange(0, 3),
        current=False,
        public=True,
    )
    return (await Submission.get()).id, await accounts.find("ada")


async def test_a_reproduction_is_compared_and_never_counts(platform: Platform) -> None:
    """It is paid for and run once, and no challenge waits for it."""
    submission_id, account = await _reproducible(platform)
    await accounts.post(account.id, Decimal(3), reason="admin_grant", reference="test")
    priced = models.priced(platform, "2")
    before = await Submission.get(id=submission_id).values()
    other = await accounts.recognise("grace", signup_grant=Decimal(0))
    with pytest.raises(Forbidden):
        await reruns.reproduce(priced, other, submission_id)
    asked = await asyncio.gather(*(reruns.reproduce(priced, account, submission_id) for _ in range(3)))
    assert len({one.evaluation_id for one in asked}) == 1
    assert not await Arrival.all().exists()
    assert (await accounts.find("ada")).credits == account.credits + 1
    await model_queue.drop("tracking")
    await models.run_all(platform)
    assert await Submission.get(id=submission_id).values() == before
    shown = (await reading.find(platform, submission_id)).reproduction
    assert shown is not None
    assert (shown.state, shown.eval_events.start, shown.eval_events.stop) == ("scored", 0, 3)
    found = {one.name: one for one in shown.results}
    assert found[TRACKML].value == before["scores"][TRACKML]
    assert found[TRACKML].again > 0
    assert shown.agrees == all(one.agrees for one in shown.results)


@pytest.mark.parametrize("failpoint", AGAIN)
async def test_a_reproduction_survives_a_kill(
    platform: Platform, chosen: dict[str, Any], failpoint: str
) -> None:
    submission_id, account = await _reproducible(platform)
    asked = await reruns.reproduce(platform, account, submission_id)
    assert models.kill_each({asked.evaluation_id: failpoint}, chosen) == [-signal.SIGKILL]
    await Evaluation.filter(turn__gte=0).update(due_at=now())
    await models.run_all(platform)
    shown = (await reading.find(platform, submission_id)).reproduction
    assert shown is not None
    assert shown.results


@pytest.mark.one_database
async def test_what_cannot_be_reproduced_is_refused(platform: Platform) -> None:
    await models.scored(platform, models.layers())
    submission_id, account = (await Submission.get()).id, await accounts.find("ada")
    with pytest.raises(Conflict, match="no public events"):
        await reruns.reproduce(platform, account, submission_id)
    submission_id, account = await _reproducible(platform)
    with pytest.raises(PaymentRequired):
        await reruns.reproduce(models.priced(platform, "5"), account, submission_id)
    assert not await Evaluation.exists(public=True)
    await Submission.filter(id=submission_id).update(evaluation_id=None)
    with pytest.raises(Conflict):
        await reruns.reproduce(platform, account, submission_id)


async def test_what_is_refused_leaves_no_file(platform: Platform) -> None:
    with pytest.raises(PaymentRequired):
        await models.send(models.priced(platform, "5"), models.layers())
    assert not await _is_stored(platform, models.layers())
    assert not await Evaluation.all().exists()


#: How an evaluation ends, and whether what it costs is given back.
ENDS = {"crashed": False, "banned": False, "noisy": True, "interrupted": True, "closed": True}


@pytest.mark.parametrize("seed", range(3))
async def test_the_ledger_agrees_whatever_becomes_of_models(platform: Platform, seed: int) -> None:
    """Charged once, refunded at most once: if the platform fails, or before the model has run."""
    chance = np.random.default_rng(seed)
    price = Decimal("0.125")
    priced = models.priced(platform, "0.125")
    account = await accounts.recognise("ada", signup_grant=Decimal(10))
    charged: dict[str, bool] = {}
    for number in range(12):
        id_ = await models.send(priced, models.layers(number))
        charged[id_] = True
        for _ in range(chance.integers(1, 3)):
            taken = await models.claimed()
            if runs := chance.random() < 0.5:
                await model_queue.mark_running(taken, {})
            if chance.random() < 0.4:
                await model_queue.cancel(taken)
                back = not runs
            else:
                code, back = list(ENDS.items())[chance.integers(len(ENDS))]
                await model_queue.mark_failed(taken, code)
            charged[id_] &= not back
            await model_queue.operate(id_, "rerun", actor="test", http_request_id="")
        await Evaluation.filter(id=id_).update(turn=None, state="failed")
    assert await accounts.audit() == []
    left = (await accounts.find("ada")).credits
    assert left == account.credits - price * sum(charged.values())


async def test_an_erased_account_has_no_models(platform: Platform) -> None:
    done = await models.scored(platform, models.layers(0))
    waiting = await models.send(platform, models.layers(1))
    account = await accounts.find("ada")
    _, files = await rulings.submitted_by(account.id)
    assert {model_files.model_key(_hash(models.layers(n))) for n in (0, 1)} <= set(files)
    await rulings.forget(account.id, "ada", "erased-1")
    rows = [await model_queue.find(one) for one in (done, waiting)]
    assert [(row.state, row.hub_username, row.manifest) for row in rows] == [
        ("scored", "erased-1", ""),
        ("cancelled", "erased-1", ""),
    ]
    assert await model_files.stored_models() == {}


@pytest.mark.usefixtures("connected")
async def test_a_long_queue_is_fair_and_costs_few_statements(caplog: pytest.LogCaptureFixture) -> None:
    """Accounts with fewer models come first, and challenges take turns."""
    moment = now() - timedelta(minutes=1)
    fields = dict.fromkeys(("hub_username", "sha256", "manifest"), "") | {"participant": "account:1"}
    versions = {"scorer_version": "", "truth_version": ""}
    of = partial(Evaluation, task="tracking", size_bytes=0, events=1, **fields, **versions)
    many = [("big", 0, turn) for turn in range(890)]
    later = [("big", 1, turn) for turn in range(100)] + [("small", 2, turn) for turn in range(10)]
    rows = [
        of(
            id=f"{number:032x}",
            challenge=challenge,
            account_id=account,
            received_at=moment + timedelta(milliseconds=number),
            due_at=moment,
            turn=turn,
        )
        for number, (challenge, account, turn) in enumerate(many + later)
    ]
    await Evaluation.bulk_create(rows)
    turns: dict[str, int] = {}
    taken = []
    with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
        for turn in range(1, 5):
            row = await model_queue.claim(turns, 60)
            assert row is not None
            turns[row.challenge] = turn
            taken.append((row.challenge, row.account_id, row.turn))
    assert taken == [("big", 0, 0), ("small", 2, 0), ("big", 1, 0), ("small", 2, 1)]
    statements = [line for line in caplog.messages if line.startswith(("SELECT", "UPDATE", "INSERT"))]
    assert len(statements) <= 3 * 4, statements
