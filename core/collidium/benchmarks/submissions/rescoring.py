"""Scores kept submissions again, with the scorer that is installed and against the truth that is current.

First each file is scored, and what comes out is kept next to the scores that count; a run that was killed is
continued. Then all of it comes into force in one transaction, or, for a preview, is rolled back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium.benchmarks import challenges
from collidium.benchmarks.models import Submission
from collidium.benchmarks.submissions import replay, reruns, scorings
from collidium.benchmarks.submissions.replay import Incomplete, Preview, Replay, Review, Target
from collidium.contracts.storage import MissingFile
from collidium.database import transactional
from collidium.errors import Conflict, InvalidInput
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.runtime import failpoints

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.scoring.engine import Evaluation

#: Called with the number of submissions scored so far, and of all.
Progress = Callable[[int, int], None]
#: Called with what has changed, within the transaction.
Applied = Callable[[Review], Awaitable[None]]


async def rescore(
    platform: Platform,
    name: str,
    *,
    percent: int | None = None,
    apply: bool,
    pays: bool = True,
    actor: str,
    http_request_id: str = "",
    progress: Progress | None = None,
    applied: Applied | None = None,
) -> Review:
    """Score every kept submission to a challenge again and return changes; without ``apply`` none is made.

    ``percent``: so much of the events is the public part from now on, and the rest is held back until the
    challenge closes. ``pays``: whether bests that are won anew are paid. ``applied`` is called with the
    changes in the transaction that makes them.

    Raises NotFound, Conflict for a challenge without truth or one that cannot be split, and ScoringFailed
    where the scorer is at fault.
    """
    row = await challenges.get(name)
    task = platform.tasks.find(row.task)
    version = row.truth_version
    if percent is not None:
        version = str(await challenges.public_part(row, percent))
    elif version is None:
        raise Conflict(f"{name!r} has no truth: there is nothing to score against")
    target = Target(name, task, version or "")
    action = "rescore" if percent is None else "split"
    problems: dict[str, str] = {}
    while True:
        problems |= await score_missing(platform, target, problems, progress)
        plan = Replay(
            platform.settings, target, problems, actor, action, http_request_id=http_request_id, pays=pays
        )
        try:
            return await _put_into_force(plan, percent, applied, apply=apply)
        except Incomplete:
            continue  # a submission arrived meanwhile
        except Preview as preview:
            return preview.review


@transactional
async def _put_into_force(
    plan: Replay, percent: int | None, applied: Applied | None, *, apply: bool
) -> Review:
    if percent is not None:
        await challenges.count_part(await challenges.locked(plan.target.challenge), percent)
    review = await replay.run(plan, apply=True)
    if not apply:
        raise Preview(replace(review, applied=False))
    if applied is not None:
        await applied(review)
    return review


async def score_missing(
    platform: Platform, target: Target, known: Iterable[str], progress: Progress | None = None
) -> dict[str, str]:
    """Score what has no scores of the target yet; returns why what could not be scored, by submission."""
    done = {scoring.submission_id for scoring in await scorings.of_versions(*target.versions)}
    rows = [
        row
        for row in await Submission.filter(challenge=target.challenge).order_by("submitted_at")
        if target.is_wanted(row) and row.id not in done and row.id not in known
    ]
    models = [row.id for row in rows if row.evaluation_id is not None]
    runs = await reruns.predictions_on(target.truth_version, models)
    problems = {id_: await reruns.why_not_run(id_, target.truth_version) for id_ in models if id_ not in runs}
    files = {row.id: str(runs[row.id].predictions if row.id in runs else row.sha256) for row in rows}
    rows = sorted((row for row in rows if row.id not in problems), key=lambda row: files[row.id])
    for sha256, same in groupby(rows, key=lambda row: files[row.id]):
        group = list(same)
        made = await _score_kept(platform, target.task, target.truth_version, sha256)
        for row in group:
            if isinstance(made, str):
                problems[row.id] = made
            else:
                if row.id in runs and runs[row.id].truth_version == target.truth_version:
                    made = replace(made, held_back=None)  # its model has not been run on these
                scorings.use_measured_errors(target.task.card, row, made)
                await scorings.keep(row.id, target.task.card, target.versions, made, scored_at=now())
                failpoints.reached("rescore.kept")
        if progress:
            progress(rows.index(group[-1]) + 1, len(rows))
    return problems


async def _score_kept(platform: Platform, task: Task, truth_version: str, sha256: str) -> Evaluation | str:
    """Score a kept file; returns the reason where that is impossible."""
    async with scratch_directory(platform.settings.uploads) as directory:
        path = directory / "predictions.parquet"
        try:
            await platform.storage.get(scorings.storage_key(sha256), path)
            if await asyncio.to_thread(sha256_of, path) != sha256:
                return "the storage has another file than was submitted"
            return await scorings.score(platform, task, truth_version, path, sha256, "ignore")
        except MissingFile:
            return "its file is not kept any more"
        except InvalidInput as error:
            return error.detail
