"""Models that the platform runs: their queue, their ends, and processes that are killed over them."""

from __future__ import annotations

import hashlib
import logging
import math
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import failpoints
from tests.sandboxes import allowance
from tortoise.timezone import now

from collidium import accounts
from collidium.benchmarks import closing
from collidium.benchmarks.models import Arrival, Challenge, Evaluation, Scoring, Submission
from collidium.benchmarks.submissions import (
    admissions,
    evaluating,
    evaluations,
    links,
    reading,
    receiving,
    rescoring,
    scorings,
)
from collidium.benchmarks.submissions.submitting import Predictions
from collidium.benchmarks.truth import truth_versions
from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Conflict, InvalidInput, TooManyRequests
from collidium.inference import timing
from collidium.platform import Platform
from collidium_tasks import tracking_small

from . import models

pytest.importorskip("onnxruntime")

EVENTS = EventRange(3, 5)
TRACKML = "trackml_weighted_efficiency"
TASKS = ("tracking", "tracking_latency")
#: One process is killed at each.
NAMES = sorted(name for name in failpoints.NAMES if name.startswith("evaluate."))


@pytest.fixture
def chosen(migrated_database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {
        "database_url": migrated_database_url,
        "data_dir": tmp_path / "data",
        "hub_url": "http://127.0.0.1:9",
        "model_unconfined": bool(allowance()),
    }


@pytest.fixture
async def platform(chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    for name, value in models.PATIENT.items():
        monkeypatch.setattr(timing, name, value)
    async with models.opened(chosen) as platform:
        for task in TASKS:
            await truth_versions.import_truth(
                platform, task, str(EVENTS_DIRECTORY), config="ttbar_pu0", events=EVENTS
            )
            await Challenge.filter(name=task).update(listed=True)
        yield platform


async def send(
    platform: Platform, model: bytes, *, of: str = "ada", to: str = "tracking", manifest: str = ""
) -> str:
    """Send a model; the id of its evaluation."""
    account = await accounts.recognise(of, signup_grant=Decimal(0))
    file = platform.settings.data_dir / "model.onnx"
    file.write_bytes(model)
    sent = Predictions(file, hashlib.sha256(model).hexdigest(), len(model))
    async with admissions.admitted(platform, account, to) as admission:
        text = manifest or models.MANIFEST.format(task=to)
        row, _ = await receiving.receive(platform, admission, sent, text, check_claim=_no_claim)
    return str(row.id)


async def _no_claim(repo: str) -> None:
    return None


async def test_a_kill_anywhere_loses_and_duplicates_nothing(
    platform: Platform, chosen: dict[str, Any]
) -> None:
    lives = {}
    for number, name in enumerate(NAMES):
        model = models.crashing() if name == "evaluate.failed" else models.layers(number)
        to = "tracking_latency" if name == "evaluate.timed" else "tracking"
        evaluation_id = await send(platform, model, to=to)
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
    evaluation_id = await send(platform, models.layers())
    await models.run_all(platform)
    row = await Submission.get(evaluation_id=evaluation_id)
    exact = (await Scoring.get(submission_id=row.id)).scores
    for name, error in (row.uncertainties or {}).items():
        assert abs(row.scores[name] - exact[name]) <= error / 10
    shown = await reading.find(platform, row.id)
    assert (shown.sha256, shown.rows, shown.model and shown.model.nodes) == (
        hashlib.sha256(models.layers()).hexdigest(),
        None,
        1,
    )


@pytest.mark.parametrize(
    ("error", "shown"), [(0.0, 0.123456), (0.01, 0.123), (0.0099, 0.1235), (0.5, 0.1), (30, 0.0)]
)
def test_scores_are_rounded_to_a_step(error: float, shown: float) -> None:
    assert scorings._to_a_tenth(0.123456, error) == shown


@pytest.mark.parametrize("error", [0.0, -1.0, 5e-324, 1e-12, math.nan, math.inf])
def test_a_model_does_not_choose_the_digits_of_its_score(error: float) -> None:
    """What it is counted for has all of its own."""
    card = tracking_small.TrackingSmallTask().card
    row = Submission(evaluation_id="0" * 32)
    scores = {TRACKML: 0.123456789, "n_params": 1234567.0}
    made = scorings.shown(card, row, scores, {TRACKML: error}, ["one"])
    assert made == {
        "scores": {TRACKML: 0.1235, "n_params": 1234567.0},
        "uncertainties": {TRACKML: error if error == math.inf else 0.0},
        "warnings": [],
    }


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, 1e-10, 1.0, 1e300, 1.7976931348623157e308])
@pytest.mark.parametrize("error", [0.0, 5e-324, 1e-10, 1e300, 1.7976931348623157e308])
def test_rounding_raises_for_no_number(value: float, error: float) -> None:
    for floor in (0, 1e-4):
        scorings._to_a_tenth(value, error, floor)
    for odd in (math.nan, math.inf, -math.inf):
        assert str(scorings._to_a_tenth(odd, error, 1e-4)) == str(odd)


async def test_speed_is_measured_by_the_platform(platform: Platform) -> None:
    evaluation_id = await send(platform, models.layers(), to="tracking_latency")
    await models.run_all(platform)
    row = await Submission.get(evaluation_id=evaluation_id)
    assert row.verified_at == row.submitted_at
    (seed,) = {block["seed"] for block in (await evaluations.find(evaluation_id)).timed}
    assert seed != int(evaluation_id, 16)
    per_event = row.scores["wallclock_s"] / len(EVENTS)
    assert per_event == pytest.approx(row.model["seconds"], rel=0.1)
    relative = row.model["seconds_error"] / row.model["seconds"]
    assert row.uncertainties["wallclock_s"] / row.scores["wallclock_s"] == pytest.approx(relative, rel=0.1)


async def test_what_a_model_does_to_itself_is_its_code(platform: Platform) -> None:
    broken = await send(platform, b"no model")
    crashed = await send(platform, models.crashing())
    await models.run_all(platform)
    ends = [(row.state, row.code) for row in [await evaluations.find(one) for one in (broken, crashed)]]
    assert ends == [("failed", "not_onnx"), ("failed", "crashed")]
    assert not await Submission.all().exists()


async def test_problems_are_listed_before_anything_is_kept(platform: Platform) -> None:
    manifest = 'contract = 2\ntask = "tracking"\nbatch = "all"\ninputs = {}\noutputs = {}\n'
    with pytest.raises(InvalidInput) as refused:
        await send(platform, models.layers(), manifest=manifest)
    assert {"contract", "batch", "outputs"} <= {error["field"] for error in refused.value.errors}
    assert not await Evaluation.all().exists()


async def test_models_count_for_the_quota_and_are_not_kept_past_it(platform: Platform) -> None:
    await Challenge.filter(name="tracking").update(submissions_per_day=2)
    first = await send(platform, models.layers(0))
    assert await send(platform, models.layers(0)) == first
    await send(platform, models.layers(1))
    await evaluations.cancel(await evaluations.find(first))
    with pytest.raises(TooManyRequests):
        await send(platform, models.layers(2))
    key = evaluations.model_key(hashlib.sha256(models.layers(2)).hexdigest())
    assert not await platform.storage.exists(key)
    with pytest.raises(Conflict):
        await evaluations.cancel(await evaluations.find(first))


async def test_a_cancelled_model_is_not_scored(platform: Platform) -> None:
    evaluation_id = await send(platform, models.layers())
    taken = await evaluations.claim({}, 60)
    assert taken is not None
    assert taken.state == "checking"
    await evaluations.cancel(await evaluations.find(evaluation_id))
    with pytest.raises(evaluations.LeaseLost):
        await evaluations.renew(taken, 60, 0)
    with pytest.raises(evaluations.LeaseLost):
        await evaluations.mark_scored(taken, "0" * 32)
    assert (await evaluations.find(evaluation_id)).state == "cancelled"
    assert not await Arrival.all().exists()


async def test_a_run_that_has_ended_stops_its_sandbox(platform: Platform) -> None:
    await send(platform, models.layers())
    taken = await evaluations.claim({}, 60)
    assert taken is not None
    run = evaluating._Run(platform, taken)
    limits = run._limits
    assert limits.total_seconds == platform.settings.model_seconds
    assert limits.look is not None
    limits.look()
    run.stopped = True
    with pytest.raises(evaluations.LeaseLost):
        limits.look()


async def test_a_machine_that_confines_no_model_runs_none(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The model waits for another machine, however often this one tries."""
    monkeypatch.setattr(evaluating, "CONFINED_BY", ("network", "moods"))
    strict = replace(platform, settings=platform.settings.model_copy(update={"model_unconfined": False}))
    evaluation_id = await send(platform, models.layers())
    for _ in range(evaluations.ATTEMPTS + 1):
        await Evaluation.all().update(due_at=now())
        taken = await evaluations.claim({}, 60)
        assert taken is not None
        await evaluating.evaluate(strict, taken)
    row = await evaluations.find(evaluation_id)
    assert (row.state, row.facts, row.lease) == ("checking", None, "")
    assert "keeps no model from: moods" in caplog.text
    allowed = platform.settings.model_copy(update={"model_unconfined": True})
    await models.run_all(replace(platform, settings=allowed))
    assert (await evaluations.find(evaluation_id)).state == "scored"


@pytest.mark.parametrize(("events", "done", "shown"), [(100, 57, 50), (100, 100, 100), (0, 0, 0)])
def test_a_run_is_shown_in_tenths_and_minutes(events: int, done: int, shown: int) -> None:
    """One that failed, too: a model chooses at which event, and when."""
    moment = datetime(2026, 5, 1, 12, 0, 30, 7, UTC)
    times = {f"{name}_at": moment + timedelta(minutes=1) for name in ("checking", "running", "ended")}
    fields = dict.fromkeys(("challenge", "task", "hub_username", "sha256"), "")
    row = Evaluation(
        **fields, size_bytes=0, state="failed", events=events, events_done=done, received_at=moment, **times
    )
    made = evaluations.view(row)
    assert made.events_done == shown
    assert {made.checking_at, made.running_at, made.ended_at} == {datetime(2026, 5, 1, 12, 1, tzinfo=UTC)}


async def test_a_banned_account_gets_no_scores(platform: Platform) -> None:
    evaluation_id = await send(platform, models.layers())
    await accounts.set_banned("ada", True)
    await models.run_all(platform)
    assert (await evaluations.find(evaluation_id)).code == "banned"
    assert not await Submission.all().exists()


async def test_a_process_that_is_lost_too_often_ends_it(platform: Platform) -> None:
    evaluation_id = await send(platform, models.layers())
    for _ in range(evaluations.ATTEMPTS):
        assert await evaluations.claim({}, 60) is not None
        await Evaluation.all().update(due_at=now())
    assert await evaluations.claim({}, 60) is None
    row = await evaluations.find(evaluation_id)
    assert (row.state, row.code) == ("failed", "interrupted")


async def test_a_challenge_ends_when_its_models_have_been_scored(platform: Platform) -> None:
    evaluation_id = await send(platform, models.layers())
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    assert not await closing.end(platform, "tracking")
    await Evaluation.all().update(received_at=now() - timedelta(days=2))
    await models.run_all(platform)
    assert (await evaluations.find(evaluation_id)).state == "scored"
    assert await closing.end(platform, "tracking")


async def test_the_end_shows_final_scores_in_steps(platform: Platform) -> None:
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    evaluation_id = await send(platform, models.layers())
    await models.run_all(platform)
    public = await Submission.get(evaluation_id=evaluation_id)
    await closing.close(platform, "tracking", actor="test", http_request_id="")
    assert await closing.end(platform, "tracking")
    final = await Submission.get(evaluation_id=evaluation_id)
    assert final.truth_version != public.truth_version
    exact = await Scoring.get(submission_id=final.id, truth_version=final.truth_version)
    assert final.rank_score == final.scores[TRACKML]
    assert (
        final.scores
        == scorings.shown(platform.tasks.find("tracking").card, final, exact.scores, exact.uncertainties, [])[
            "scores"
        ]
    )
    (earlier,) = (await reading.find(platform, final.id)).earlier_scores
    assert earlier.scores == public.scores


async def test_an_erased_account_has_no_models(platform: Platform) -> None:
    done = await send(platform, models.layers(0))
    await models.run_all(platform)
    waiting = await send(platform, models.layers(1))
    account = await accounts.find("ada")
    _, files = await links.submitted_by(account.id)
    assert {evaluations.model_key(hashlib.sha256(models.layers(n)).hexdigest()) for n in (0, 1)} <= set(files)
    await links.forget(account.id, "ada", "erased-1")
    rows = [await evaluations.find(one) for one in (done, waiting)]
    assert [(row.state, row.hub_username, row.manifest) for row in rows] == [
        ("scored", "erased-1", ""),
        ("cancelled", "erased-1", ""),
    ]
    assert await evaluations.stored_models() == {}


@pytest.mark.usefixtures("connected")
async def test_a_long_queue_is_fair_and_costs_few_statements(caplog: pytest.LogCaptureFixture) -> None:
    """The account that has sent the fewest is first, and challenges take turns."""
    moment = now() - timedelta(minutes=1)
    fields = dict.fromkeys(("hub_username", "participant", "sha256", "manifest"), "")
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
            row = await evaluations.claim(turns, 60)
            assert row is not None
            turns[row.challenge] = turn
            taken.append((row.challenge, row.account_id, row.turn))
    assert taken == [("big", 0, 0), ("small", 2, 0), ("big", 1, 0), ("small", 2, 1)]
    statements = [line for line in caplog.messages if line.startswith(("SELECT", "UPDATE", "INSERT"))]
    assert len(statements) <= 3 * 4, statements
