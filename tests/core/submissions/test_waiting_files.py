"""Files with scores keep their place while they cannot be scored again for reasons that are not their own."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.submissions.conftest import Prepared
from tests.counts import LONG
from tests.killing import Killer
from tortoise.timezone import now

from collidium import accounts, erasing, operations
from collidium.challenges.models import Challenge
from collidium.contracts.tables import flatten
from collidium.database import execute_many, transactional
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Conflict, InvalidInput, NotFound, ScoringInterrupted, Unavailable
from collidium.model_runs import model_queue
from collidium.model_runs.models import Evaluation
from collidium.organising import closing
from collidium.platform import Platform
from collidium.scoring import engine
from collidium.scoring.uncertainty import PUBLIC_SEED, Replicates
from collidium.submissions import (
    admissions,
    giving_back,
    model_runner,
    rescoring,
    rulings,
    scores,
    submit,
    waiting,
)
from collidium.submissions.models import Rescoring, Scoring, Submission, WaitingFile
from collidium.submissions.replay import ReplayTarget
from collidium.submissions.waiting import FilesWait
from collidium.truth import draw_seeds
from collidium.truth.models import DrawSeed

from . import models

BY: Any = {"actor": "test", "http_request_id": ""}
REPEATS = range(20 if LONG else 1)


@pytest.fixture
async def platform(prepared: Prepared, tmp_path: Path) -> AsyncIterator[Platform]:
    with prepared(tmp_path, "tracking") as chosen:
        async with models.opened(chosen | {"model_unconfined": True}) as platform:
            yield platform


def predictions(directory: Path, keep: float) -> submit.Predictions:
    """The true tracks, but for some hits."""
    table = flatten(pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet"), ["hit_id", "particle_id"])
    events = np.asarray(table["event_id"])
    table = table.filter(pa.array((events >= 3) & (events < 5)))
    _, tracks = np.unique(table["particle_id"].to_numpy(), return_inverse=True)
    tracks = np.where(np.random.default_rng(1).random(len(tracks)) < keep, tracks, -1)
    file = directory / f"{keep}.parquet"
    pq.write_table(
        pa.table({"event_id": table["event_id"], "hit_id": table["hit_id"], "track_id": tracks}), file
    )
    content = file.read_bytes()
    return submit.Predictions(file, hashlib.sha256(content).hexdigest(), len(content))


async def submit_file(platform: Platform, directory: Path, name: str, keep: float) -> Submission:
    account = await accounts.recognise(name, signup_grant=Decimal(0))
    async with admissions.admitted(platform, account, "tracking") as admission:
        sent = predictions(directory, keep)
        made = await submit.submit(platform, admission, sent, check_claim=models.no_claim)
    return await Submission.get(id=made.submission.submission_id)


async def age() -> None:
    """Pretend that an older scorer made all scores."""
    await Submission.all().update(scorer_version="0")
    await Scoring.all().update(scorer_version="0")


async def places() -> dict[str, float]:
    rows = await Submission.filter(standing="ranked", represents=True, rank_score__isnull=False)
    return {row.id: row.rank_score for row in rows}


async def ordered(platform: Platform) -> Rescoring:
    """Work on the order for new scores, also if it is not due yet."""
    await Rescoring.all().update(leased_until=now() - timedelta(seconds=1))
    row = await rescoring._claim(60)
    assert row is not None
    await rescoring._work(platform, row)
    return await Rescoring.get(challenge="tracking")


# -- check and submit ----------------------------------------------------------------------------------


@pytest.mark.one_database
@pytest.mark.parametrize("step", ["check", "submit"])
@pytest.mark.parametrize("_", REPEATS)
async def test_a_killed_worker_rejects_no_file(platform: Platform, tmp_path: Path, step: str, _: int) -> None:
    account = await accounts.recognise("ada", signup_grant=Decimal(0))
    sent = predictions(tmp_path, 0.9)
    async with admissions.admitted(platform, account, "tracking") as admission:
        with Killer(os.getpid()) as killer:
            if step == "check":
                assert (await submit.check(platform, admission, sent)).rows
            else:
                await submit.submit(platform, admission, sent, check_claim=models.no_claim)
    assert len(killer.killed) == 1


@pytest.mark.one_database
async def test_workers_killed_for_ever_are_unavailable(platform: Platform, tmp_path: Path) -> None:
    account = await accounts.recognise("ada", signup_grant=Decimal(0))
    async with admissions.admitted(platform, account, "tracking") as admission:
        with Killer(os.getpid(), inf), pytest.raises(ScoringInterrupted):
            await submit.check(platform, admission, predictions(tmp_path, 0.9))
    assert not await Submission.exists()


# -- rescoring -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("_", REPEATS)
async def test_a_rescoring_whose_workers_are_killed_waits(platform: Platform, tmp_path: Path, _: int) -> None:
    for name, keep in (("ada", 0.9), ("bob", 0.8)):
        await submit_file(platform, tmp_path, name, keep)
    await age()
    before = await places()
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    with Killer(os.getpid(), inf):
        row = await ordered(platform)
    assert row.ended_at is None
    seen = await rescoring.find("tracking")
    assert (seen.state, seen.waiting.keys()) == ("waiting", before.keys())
    assert all("interrupted" in reason for reason in seen.waiting.values())
    assert await places() == before
    assert (await waiting.number()).waiting == 2
    row = await ordered(platform)
    assert (row.problem, row.unscored, await places()) == ("", {}, before)
    assert row.ended_at is not None
    assert (await waiting.number()).waiting == 0
    assert {one.scorer_version for one in await Submission.all()} == {platform.tasks.find("tracking").version}


@pytest.mark.one_database
@pytest.mark.parametrize("_", REPEATS)
async def test_one_killed_worker_does_not_delay_a_rescoring(
    platform: Platform, tmp_path: Path, _: int
) -> None:
    await submit_file(platform, tmp_path, "ada", 0.9)
    await age()
    before = await places()
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    with Killer(os.getpid()) as killer:
        row = await ordered(platform)
    assert (len(killer.killed), row.problem, row.unscored) == (1, "", {})
    assert row.ended_at is not None
    assert await places() == before


async def test_a_lost_file_waits_until_it_is_left_out(platform: Platform, tmp_path: Path) -> None:
    lost, other = [
        await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))
    ]
    await age()
    before = await places()
    stored = platform.settings.data_dir / "storage" / scores.storage_key(lost.sha256)
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    content = stored.read_bytes()
    stored.write_bytes(content[:-100] + bytes(100))
    await ordered(platform)
    stored.unlink()
    row = await ordered(platform)
    assert row.ended_at is None
    assert await places() == before
    (file,) = await waiting.find("tracking")
    assert (file.submission_id, file.hub_username, file.attempts) == (lost.id, "ada", 2)
    assert file.reason == "its file is not in the storage"
    assert file.retry_at > now()
    with pytest.raises(NotFound):
        await waiting.leave_out("tracking", other.id, "", **BY)
    left_out = await waiting.leave_out("tracking", lost.id, "a disk was lost", **BY)
    assert left_out.left_out_at is not None
    with pytest.raises(Conflict):
        await waiting.leave_out("tracking", lost.id, "again", **BY)
    audited = await operations.recorded("leave_out", lost.id)
    assert audited is not None
    assert audited.details["reason"] == "a disk was lost"
    row = await rescoring._claim(60)
    assert row is not None, "at once"
    await rescoring._work(platform, row)
    row = await Rescoring.get(challenge="tracking")
    assert row.unscored == {lost.id: "an operator left it out: a disk was lost"}
    assert list(await places()) == [other.id]
    assert (await Submission.get(id=lost.id)).scores == lost.scores
    assert not await WaitingFile.exists()


async def test_a_command_that_rescores_names_files_that_wait(platform: Platform, tmp_path: Path) -> None:
    made = await submit_file(platform, tmp_path, "ada", 0.9)
    await age()
    (platform.settings.data_dir / "storage" / scores.storage_key(made.sha256)).unlink()
    with pytest.raises(FilesWait, match="waiting: 1 files: its file is not in the storage"):
        await rescoring.rescore(platform, "tracking", apply=True, actor="test")


async def test_scores_of_replaced_draws_are_not_stored(platform: Platform, tmp_path: Path) -> None:
    row = await submit_file(platform, tmp_path, "ada", 0.9)
    await Scoring.all().delete()
    await DrawSeed.all().update(seed=PUBLIC_SEED)
    replacing = asyncio.Event()

    @transactional
    async def redraw() -> None:
        await draw_seeds.lock("tracking", [row.truth_version])
        replacing.set()
        for _ in range(20):  # the other task has time to read the seed
            await DrawSeed.all()
        await draw_seeds.replace("tracking", row.truth_version)

    async def keep() -> None:
        await replacing.wait()
        versions = row.scorer_version, row.truth_version
        made = engine.ScoringResult({}, [], 0, Replicates({}), {})
        card = platform.tasks.find("tracking").card
        await scores.keep_alone(row.id, card, versions, made, scored_at=now())

    done, kept = await asyncio.gather(redraw(), keep(), return_exceptions=True)
    assert done is None
    assert isinstance(kept, Unavailable)
    assert not await Scoring.exists()


async def test_a_file_that_was_scored_is_not_undecodable(platform: Platform, tmp_path: Path) -> None:
    """With little time a new file is rejected, and a known one is not."""
    await submit_file(platform, tmp_path, "ada", 0.9)
    scarce = platform.settings.model_copy(update={"scoring_seconds": 1e-4})
    platform = replace(platform, settings=scarce)
    account = await accounts.recognise("bob", signup_grant=Decimal(0))
    async with admissions.admitted(platform, account, "tracking") as admission:
        with pytest.raises(InvalidInput, match="longer than"):
            await submit.check(platform, admission, predictions(tmp_path, 0.8))
        with pytest.raises(ScoringInterrupted):
            await submit.check(platform, admission, predictions(tmp_path, 0.9))


@pytest.mark.parametrize("gone", ["erased", "withdrawn"])
async def test_a_gone_submission_holds_up_no_rescoring(platform: Platform, tmp_path: Path, gone: str) -> None:
    made, other = [
        await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))
    ]
    if gone == "erased":
        found = await erasing.preview("ada")
        assert found is not None
        await erasing.finish(await erasing.close(found, actor="test"), platform.storage)
    else:
        await Submission.filter(id=made.id).update(standing="withdrawn", rank_score=None, represents=False)
        (platform.settings.data_dir / "storage" / scores.storage_key(made.sha256)).unlink()
    await age()
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    row = await ordered(platform)
    assert row.ended_at is not None
    assert row.unscored == {made.id: "its file is not in the storage"}
    assert list(await places()) == [other.id]
    assert not await WaitingFile.exists()


async def test_missing_files_hide_no_others(platform: Platform, tmp_path: Path) -> None:
    names = ["ada", "bob", "cyd", "dan"]
    sent = [await submit_file(platform, tmp_path, name, 0.9 - i / 10) for i, name in enumerate(names)]
    await age()
    for made in sorted(sent, key=lambda row: row.sha256)[:3]:
        (platform.settings.data_dir / "storage" / scores.storage_key(made.sha256)).unlink()
    last = max(sent, key=lambda row: row.sha256)
    with pytest.raises(FilesWait):
        await rescoring.rescore(platform, "tracking", apply=False, actor="test")
    assert not await WaitingFile.exists(), "a preview is not retried"
    assert await Scoring.exists(submission_id=last.id, scorer_version=platform.tasks.find("tracking").version)


async def test_noting_keeps_what_an_operator_left_out(platform: Platform, tmp_path: Path) -> None:
    made = await submit_file(platform, tmp_path, "ada", 0.9)
    row = await Challenge.get(name="tracking")
    target = ReplayTarget("tracking", platform.tasks.find("tracking"), row.truth_version)
    await asyncio.gather(*(waiting.note(target, [made.id], "lost") for _ in range(4)))
    assert (await waiting.number()).waiting == 1
    await waiting.leave_out("tracking", made.id, "a disk was lost", **BY)
    await waiting.note(target, [made.id], "lost again")
    assert (await waiting.number()).waiting == 0
    assert await waiting.left_out(target) == {made.id: "an operator left it out: a disk was lost"}
    older = replace(target, truth_version="older")
    await waiting.note(older, [made.id], "lost")
    await WaitingFile.filter(truth_version="older").update(scorer_version="0")
    await waiting.forget(target)
    assert not await WaitingFile.exists()


@pytest.mark.one_database
async def test_predictions_of_a_model_run_again_wait(platform: Platform, tmp_path: Path) -> None:
    """Their hash is that of no submission."""
    made = await submit_file(platform, tmp_path, "ada", 0.9)
    await models.scored(platform, models.layers(), of="bob")
    sent = predictions(tmp_path, 0.8)
    await Evaluation.all().update(predictions=sent.sha256)
    scarce = platform.settings.model_copy(update={"scoring_seconds": 1e-4})
    platform = replace(platform, settings=scarce)
    task = platform.tasks.find("tracking")
    with pytest.raises(ScoringInterrupted):
        await scores.score(platform, task, made.truth_version, sent.path, sent.sha256)


async def test_files_are_retried_for_a_day(platform: Platform, tmp_path: Path) -> None:
    made = await submit_file(platform, tmp_path, "ada", 0.9)
    await age()
    before = await places()
    stored = platform.settings.data_dir / "storage" / scores.storage_key(made.sha256)
    content = stored.read_bytes()
    stored.unlink()
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    await ordered(platform)
    assert await waiting.number() == waiting.Number(1, 0)
    await WaitingFile.all().update(since=now() - waiting.RETRIED_FOR, retry_at=now() - timedelta(hours=1))
    row = await ordered(platform)
    assert row.leased_until > now() + timedelta(seconds=30)
    assert await waiting.number() == waiting.Number(1, 1)
    (file,) = await waiting.find("tracking")
    assert (file.attempts, file.retry_at) == (2, None)
    stored.write_bytes(content)
    await ordered(platform)
    (file,) = await waiting.find("tracking")
    assert (file.attempts, await places()) == (2, before), "it was not tried"
    (file,) = await waiting.retry("tracking", **BY)
    assert file.retry_at is not None
    assert await operations.recorded("retry_waiting", "tracking") is not None
    row = await rescoring._claim(60)
    assert row is not None, "at once"
    await rescoring._work(platform, row)
    assert (await Rescoring.get(challenge="tracking")).ended_at is not None
    assert await places() == before
    with pytest.raises(Conflict, match="nothing waits"):
        await waiting.retry("tracking", **BY)


@pytest.mark.parametrize("standing", ["disqualified", "banned"])
async def test_a_lost_file_without_a_rank_holds_up_nothing(
    platform: Platform, tmp_path: Path, standing: str
) -> None:
    lost, other = [
        await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))
    ]
    await Submission.filter(id=lost.id).update(standing=standing, rank_score=None, represents=False)
    (platform.settings.data_dir / "storage" / scores.storage_key(lost.sha256)).unlink()
    await age()
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    row = await ordered(platform)
    assert row.unscored == {lost.id: "its file is not in the storage"}
    assert list(await places()) == [other.id]


async def test_a_file_is_given_up_when_it_has_no_rank(platform: Platform, tmp_path: Path) -> None:
    """Also one that was disqualified after a day, so that no operator has to leave it out."""
    rows = [await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))]
    await age()
    await rescoring.order(platform, "tracking", percent=None, apply=True, pays=True, **BY)
    with Killer(os.getpid(), inf):
        await ordered(platform)
        await Submission.filter(id=rows[0].id).update(standing="banned", rank_score=None, represents=False)
        await WaitingFile.all().update(since=now() - waiting.RETRIED_FOR)
        await ordered(platform)
    assert await waiting.number() == waiting.Number(1, 1)
    await Submission.filter(id=rows[1].id).update(standing="disqualified", rank_score=None, represents=False)
    row = await ordered(platform)
    assert row.unscored.keys() == {one.id for one in rows}
    assert all("interrupted" in reason for reason in row.unscored.values())
    assert not await WaitingFile.exists()


# -- the end of a challenge ----------------------------------------------------------------------------


@pytest.mark.parametrize("_", REPEATS)
async def test_an_end_whose_workers_are_killed_waits(platform: Platform, tmp_path: Path, _: int) -> None:
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    for name, keep in (("ada", 0.9), ("bob", 0.8)):
        await submit_file(platform, tmp_path, name, keep)
    await Scoring.filter(truth_version__contains="final").delete()
    before = await places()
    await closing.close(platform, "tracking", **BY)
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    with Killer(os.getpid(), inf):
        assert not await closing.end(platform, "tracking")
    assert await places() == before
    assert (await waiting.number()).waiting == 2
    assert not await closing.end(platform, "tracking"), "paused"
    await WaitingFile.all().update(retry_at=now())
    assert await closing.end(platform, "tracking")
    assert (await places()).keys() == before.keys()
    assert not await WaitingFile.exists()


async def test_an_end_does_not_wait_for_files_that_are_not_final(platform: Platform, tmp_path: Path) -> None:
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    best, other = [await submit_file(platform, tmp_path, "ada", keep) for keep in (0.9, 0.8)]
    await Challenge.filter(name="tracking").update(final_submissions=1)
    await Scoring.filter(truth_version__contains="final").delete()
    (platform.settings.data_dir / "storage" / scores.storage_key(other.sha256)).unlink()
    await closing.close(platform, "tracking", **BY)
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    assert await closing.end(platform, "tracking")
    assert list(await places()) == [best.id]
    assert (await Submission.get(id=other.id)).standing == "not_final"


async def test_a_kill_leaves_no_file_without_a_rank_to_wait_for(platform: Platform, tmp_path: Path) -> None:
    """Where the last attempt of a day was killed before it gave up what does not count."""
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    _, other = [await submit_file(platform, tmp_path, "ada", keep) for keep in (0.9, 0.8)]
    await Challenge.filter(name="tracking").update(final_submissions=1)
    await Scoring.filter(truth_version__contains="final", submission_id=other.id).delete()
    version = (await Challenge.get(name="tracking")).truth_version.final
    await closing.close(platform, "tracking", **BY)
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    target = ReplayTarget("tracking", platform.tasks.find("tracking"), version)
    await waiting.note(target, [other.id], "the storage was away")
    await WaitingFile.all().update(since=now() - timedelta(days=2), retry_at=now() + timedelta(hours=1))
    assert not await closing.end(platform, "tracking")
    await WaitingFile.all().update(retry_at=now())
    assert await closing.end(platform, "tracking")


async def test_an_end_that_is_no_longer_retried_goes_on(
    platform: Platform, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    rows = [await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))]
    await Scoring.filter(truth_version__contains="final").delete()
    for row in rows:
        (platform.settings.data_dir / "storage" / scores.storage_key(row.sha256)).unlink()
    await closing.close(platform, "tracking", **BY)
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    assert not await closing.end(platform, "tracking")
    await WaitingFile.all().update(since=now() - timedelta(days=2), retry_at=now())
    assert not await closing.end(platform, "tracking")
    assert await waiting.number() == waiting.Number(2, 2)
    await waiting.leave_out("tracking", rows[0].id, "lost", **BY)
    with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
        assert not await closing.end(platform, "tracking")
    (read,) = [sql for sql in caplog.messages if "waiting_files" in sql]
    assert "reason" not in read  # no rows, each second
    await rulings.disqualify(platform, "tracking", rows[1].id, "x", take_back=True, pays=True, **BY)
    assert await closing.end(platform, "tracking")
    assert not await WaitingFile.exists()


@pytest.mark.one_database
async def test_an_end_waits_for_a_model_that_the_platform_failed(platform: Platform) -> None:
    await rescoring.rescore(platform, "tracking", percent=50, apply=True, actor="test")
    await models.scored(platform, models.layers())
    await closing.close(platform, "tracking", **BY)
    assert not await closing.end(platform, "tracking")
    with Killer(os.getpid(), inf):
        for _ in range(model_queue.ATTEMPTS):
            await model_runner.evaluate(platform, await models.claimed())
    run = await Evaluation.get(again=True)
    assert run.code == "platform_failed"
    await Challenge.filter(name="tracking").update(closes_at=now() - timedelta(days=1))
    assert not await closing.end(platform, "tracking")
    (file,) = await waiting.find("tracking")
    assert "The platform failed to score it" in file.reason
    await model_queue.operate(run.id, "rerun", **BY)
    await models.run_all(platform)
    await WaitingFile.all().update(retry_at=now())
    assert await closing.end(platform, "tracking")
    assert len(await places()) == 1


# -- what earlier releases took ------------------------------------------------------------------------


async def upgrade() -> None:
    """Pretend that the database was upgraded just now."""
    await execute_many(
        "UPDATE tortoise_migrations SET applied_at = ? WHERE name = ?", [(now(), giving_back._UPGRADE)]
    )


async def test_what_a_dead_worker_took_is_given_back(platform: Platform, tmp_path: Path) -> None:
    """Rows as release 0.4 left them after a rescoring and a model whose workers were killed."""
    lost, other = [
        await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))
    ]
    before = await places()
    await Submission.filter(id=lost.id).update(scorer_version="0", rank_score=None, represents=False)
    await Scoring.filter(submission_id=lost.id).update(scorer_version="0")
    problem = "the file cannot be decoded: its reader crashes over it"
    await Rescoring(
        challenge="tracking",
        applies=True,
        pays=True,
        actor="",
        http_request_id="",
        asked_at=now(),
        ended_at=now(),
        unscored={lost.id: problem},
        leased_until=now(),
    ).save(force_create=True)
    await accounts.recognise("eve", signup_grant=Decimal(3))
    costly = models.priced(platform, "3")
    evaluation_id = await models.send(costly, models.layers(), of="eve")
    await model_queue.mark_failed(await models.claimed(), "not_scored")

    await upgrade()
    found = await giving_back.taken(platform.tasks.things)
    assert [(one.evaluation_id, one.not_run) for one in found.models] == [(evaluation_id, "")]
    assert [(one.submission_id, one.reason) for one in found.places] == [(lost.id, problem)]
    assert list(await places()) == [other.id]
    for _ in range(2):
        await giving_back.give_back(found.models[0], actor="test")
    assert (await accounts.find("eve")).credits == 3
    for name in found.challenges:
        await rescoring.rescore(platform, name, apply=True, actor="test")
    assert await places() == before
    await models.run_all(costly)
    assert (await model_queue.find(evaluation_id)).state == "scored"
    found = await giving_back.taken(platform.tasks.things)
    assert (found.models, found.places) == ((), ())


async def test_a_model_is_given_back_once(platform: Platform) -> None:
    """The verdict over a model that was run again stays."""
    await accounts.recognise("eve", signup_grant=Decimal(3))
    costly = models.priced(platform, "3")
    evaluation_id = await models.send(costly, models.layers(), of="eve")
    await model_queue.mark_failed(await models.claimed(), "not_scored")
    await upgrade()
    (model,) = (await giving_back.taken(platform.tasks.things)).models
    await giving_back.give_back(model, actor="test")
    await model_queue.mark_failed(await models.claimed(), "not_scored")
    assert (await giving_back.taken(platform.tasks.things)).models == ()
    await giving_back.give_back(model, actor="test")
    assert (await accounts.find("eve")).credits == 3
    assert (await model_queue.find(evaluation_id)).code == "not_scored"


async def test_verdicts_since_the_upgrade_are_not_given_back(platform: Platform, tmp_path: Path) -> None:
    rows = [await submit_file(platform, tmp_path, name, keep) for name, keep in (("ada", 0.9), ("bob", 0.8))]
    await Submission.filter(id=rows[0].id).update(scorer_version="0", rank_score=None, represents=False)
    await Scoring.filter(submission_id=rows[0].id).update(scorer_version="0")
    await models.send(platform, models.layers(), of="eve")
    await model_queue.mark_failed(await models.claimed(), "not_scored")
    assert (await giving_back.taken(platform.tasks.things)).models == ()
    found = await giving_back.taken(platform.tasks.things, now())
    assert (len(found.models), len(found.places)) == (1, 1)
    await upgrade()
    assert await giving_back.taken(platform.tasks.things) == found
    stored = platform.settings.data_dir / "storage" / scores.storage_key(rows[0].sha256)
    stored.unlink()
    await Submission.filter(id=rows[0].id).update(standing="banned")
    await rescoring.rescore(platform, "tracking", apply=True, actor="test")
    await Submission.filter(id=rows[0].id).update(standing="ranked")
    assert (await giving_back.taken(platform.tasks.things)).places == ()
