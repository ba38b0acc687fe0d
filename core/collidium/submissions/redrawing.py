"""Replaces the public draws of earlier releases by those of a secret seed, when a version is scored again.

All files with scores against the version are scored by the new draws first, and these results are stored
under a version of their own. One transaction replaces the seed and all scorings. A file that cannot be scored
keeps its old ones, which are paired with no others. Files that cannot be scored now are waited for, until an
operator leaves them out; these keep their old draws, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import challenges
from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.database import execute_many, in_chunks, rows_of, stored
from collidium.errors import InvalidInput, ScoringFailed, ScoringInterrupted
from collidium.files.held import scratch_directory
from collidium.files.stored import fetch
from collidium.model_runs import model_reruns
from collidium.runtime import failpoints
from collidium.scoring.engine import ScoringResult, Seeds
from collidium.submissions import scores, waiting
from collidium.submissions.models import Scoring, Submission
from collidium.submissions.replay import ReplayTarget
from collidium.submissions.scores import TooSlow
from collidium.truth import draw_seeds

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.scoring.truth.parts import ScoredTruth

#: Files in a row that cannot be scored now after which the others are tried later, too.
MOST_FAILURES: Final = 3
_MISSING: Final = """SELECT old.submission_id FROM scorings old LEFT JOIN scorings made
ON made.submission_id = old.submission_id AND made.scorer_version = old.scorer_version
AND made.truth_version = ?
WHERE old.scorer_version = ? AND old.truth_version = ? AND old.seed = '' AND made.id IS NULL"""
_REPLACE: Final = """UPDATE scorings SET uncertainties = made.uncertainties, replicates = made.replicates,
primary_draws = made.primary_draws, seed = made.seed FROM scorings AS made
WHERE made.truth_version = ? AND made.scorer_version = ? AND scorings.truth_version = ?
AND scorings.scorer_version = made.scorer_version AND scorings.submission_id = made.submission_id"""
_ERRORS: Final = "UPDATE submissions SET uncertainties = ? WHERE id = ?"


def waits_of(target: ReplayTarget) -> ReplayTarget:
    """What files wait for that get no new draws for a target: apart from those without any scores for it."""
    return replace(target, truth_version=draw_seeds.successor(target.truth_version))


@dataclass(frozen=True, slots=True)
class Redrawing:
    """The versions whose draws are replaced, and the files that keep theirs."""

    task: Task
    #: What files wait for that cannot be scored now.
    waits: ReplayTarget
    #: What counts for the challenge: a version of truth, and what it holds back.
    counts: ScoredTruth
    held_back: ScoredTruth | None
    #: Those of the two that have public draws.
    versions: Sequence[ScoredTruth]
    #: Submissions that could not be scored, or were left out.
    kept: set[str]

    @classmethod
    async def of(cls, target: ReplayTarget) -> Redrawing:
        """What a rescoring for a target replaces; without versions there is nothing to do."""
        task, counts = target.task, target.truth_version
        both = [version for version in (counts, counts.held_back) if version is not None]
        versions = [one for one in both if await draw_seeds.is_public(task.card.name, one)]
        return cls(task, waits_of(target), counts, counts.held_back, versions, set())

    async def missing(self) -> dict[str, list[ScoredTruth]]:
        """The versions by which each submission has scores of public draws, and none of new ones yet."""
        found: dict[str, list[ScoredTruth]] = {}
        for version in self.versions:
            rows = await rows_of(_MISSING, draw_seeds.successor(version), self.task.version, version)
            for row in rows:
                if row["submission_id"] not in self.kept:
                    found.setdefault(row["submission_id"], []).append(version)
        return found

    async def score(self, platform: Platform) -> None:
        """Score every file that has scores of public draws by the new ones.

        Raises FilesWait if some cannot be scored now.
        """
        await waiting.give_up(self.waits)
        await waiting.require_retried(self.waits)
        self.kept.update(await waiting.left_out(self.waits))
        missing = await self.missing() if self.versions else {}
        rows = [row for some in in_chunks(missing) for row in await Submission.filter(id__in=some)]
        files = await self._files(rows)
        rows.sort(key=lambda row: files[row.id])
        failures, waits = 0, False
        for sha256, same in groupby(rows, key=lambda row: files[row.id]):
            group, made = list(same), None
            try:
                made = await self._evaluate(platform, sha256)
                failures = 0
            except (StorageUnavailable, ScoringInterrupted) as error:
                await waiting.note(self.waits, [row.id for row in group], str(error))
                failures, waits = failures + 1, True
                if failures >= MOST_FAILURES:
                    break  # most likely the storage or the executor is away
                continue
            await waiting.resolve(self.waits, [row.id for row in group])
            for row in group:
                if made is None:
                    self.kept.add(row.id)
                else:
                    await self._keep(row, made, missing[row.id])
                    failpoints.reached("rescore.redrawn")
        if waits:
            await waiting.give_up(self.waits)
            await waiting.require_none(self.waits)
            self.kept.update(await waiting.left_out(self.waits))

    async def _files(self, rows: Iterable[Submission]) -> dict[str, str]:
        """The hash of the predictions of each submission for these events."""
        models = [row.id for row in rows if row.evaluation_id is not None]
        runs = await model_reruns.predictions_on(self.counts, models)
        return {row.id: str(runs[row.id].predictions if row.id in runs else row.sha256) for row in rows}

    async def _evaluate(self, platform: Platform, sha256: str) -> ScoringResult | None:
        """Score a stored file by the new draws; None if that is impossible."""
        seeds = [
            await draw_seeds.of_version(self.task.card.name, self._stored_as(version))
            for version in (self.counts, self.held_back)
            if version is not None
        ]
        async with scratch_directory(platform.settings.uploads) as directory:
            path = directory / "predictions.parquet"
            try:
                await fetch(platform.storage, scores.storage_key(sha256), path, sha256)
                return await scores.score(
                    platform, self.task, self.counts, path, sha256, "ignore", Seeds(*seeds)
                )
            except ScoringInterrupted:
                raise
            except (MissingFile, InvalidInput, ScoringFailed, TooSlow):
                return None

    def _stored_as(self, version: ScoredTruth) -> ScoredTruth:
        return draw_seeds.successor(version) if version in self.versions else version

    async def _keep(self, row: Submission, made: ScoringResult, versions: Sequence[ScoredTruth]) -> None:
        card = self.task.card
        own = scores.with_measured_errors(card, row.model, made)
        for version in versions:
            result = own if version == self.counts else own.held_back
            if result is not None:
                successor = self.task.version, draw_seeds.successor(version)
                await scores.keep_alone(row.id, card, successor, result, scored_at=now())

    async def lock(self, challenge: str) -> None:
        """Lock the challenge and all that score against the version, by name to prevent deadlocks."""
        if self.versions:
            await challenges.lock_sharing(self.task.card.name, self.counts, challenge)
        else:
            await challenges.locked(challenge)

    async def is_complete(self) -> bool:
        """Lock all challenges that score against the version; whether every file has the new draws."""
        if not self.versions:
            return True
        for challenge in await challenges.lock_sharing(self.task.card.name, self.counts):
            await challenges.bump_revision(challenge)  # its errors change
        made = map(draw_seeds.successor, self.versions)
        await draw_seeds.lock(self.task.card.name, [*self.versions, *made])
        return not await self.missing()

    async def apply(self) -> None:
        """Replace seeds and scorings, in the transaction that found it complete."""
        for version in self.versions:
            successor, scorer = draw_seeds.successor(version), self.task.version
            made = Scoring.filter(truth_version=successor, scorer_version=scorer)
            ids = [row.submission_id for row in await made.only("id", "submission_id")]
            await execute_many(_REPLACE, [(successor, scorer, version)])
            await Scoring.filter(truth_version=successor).delete()
            await draw_seeds.replace(self.task.card.name, version)
            for some in in_chunks(ids):
                await self._show(some, (scorer, version))
        await waiting.forget(self.waits)
        failpoints.reached("rescore.redraws_applied")

    async def _show(self, submission_ids: Sequence[str], versions: tuple[str, str]) -> None:
        """Show the new errors of the submissions whose scores are of these versions."""
        rows = await Submission.filter(
            id__in=submission_ids, scorer_version=versions[0], truth_version=versions[1]
        )
        made = await scores.without_replicates([row.id for row in rows], versions)
        values = [
            (stored(Submission, "uncertainties", self._errors(row, made)), row.id)
            for row in rows
            if row.id in made
        ]
        await execute_many(_ERRORS, values)

    def _errors(self, row: Submission, made: Mapping[str, Scoring]) -> object:
        found = made[row.id]
        return scores.shown(self.task.card, row, found.scores, found.uncertainties, [])["uncertainties"]
