"""Reads submissions: single ones, lists for accounts and operators, and comparisons of two.

Why a submission has no rank is computed when it is read: stored, an import of truth would rewrite all rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import hypot
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import convert, structs
from tortoise.expressions import Q

from collidium import challenges, records
from collidium.challenges import Challenge, Participant, tasklist
from collidium.errors import Forbidden, InvalidInput, NotFound, UnknownCursor
from collidium.model_runs import model_queue, model_reruns
from collidium.submissions import scores
from collidium.submissions.models import Scoring, Submission
from collidium.truth import draw_seeds, registry

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

    from collidium.accounts import AccountView
    from collidium.contracts.task import Card
    from collidium.platform import Platform
    from collidium.scoring.uncertainty import Replicates
    from collidium.truth.registry import TruthRecord

#: ``verified``: the submitter, or an organisation of theirs, owns the repository. ``unverified``: another
#: account does, or the hub was unavailable. ``missing``: the submitter's token sees no such repository.
Claim = Literal["verified", "unverified", "missing"]

SUBMISSION_ID: Final = re.compile(r"[0-9a-f]{32}")
#: Why a submission has no rank, by its standing.
_STANDINGS: Final = {
    "banned": "its account is banned",
    "withdrawn": "withdrawn by its owner",
    "disqualified": "disqualified",
    "practice": "submitted for practice, after closing",
    "not_final": "not among its participant's final submissions",
}


async def find(platform: Platform, submission_id: str) -> records.Submission:
    """The submission of that id; raises NotFound."""
    row = await row_of(submission_id)
    truth = await registry.find(row.task, row.truth_version)
    card = card_of(platform, row)
    unranked = why_unranked(row, await challenges.find(row.challenge), card)
    found = view(row, truth, await scores.earlier(card, row), unranked)
    if found.model is not None:
        graph = await model_queue.graph_of(row.evaluation_id)
        found = structs.replace(
            found,
            model=structs.replace(found.model, graph=graph),
            reproduction=await _reproduction_of(platform, row),
        )
    return structs.replace(found, curves=await scores.curves_of(row))


async def _reproduction_of(platform: Platform, row: Submission) -> records.Reproduction | None:
    """The last run of a submission's model on public events, compared with the scores that count."""
    run = await model_reruns.on_public_events(row.id)
    if run is None:
        return None
    scoring = await Scoring.get_or_none(
        submission_id=row.id, truth_version=run.truth_version, scorer_version=run.scorer_version
    )
    card = card_of(platform, row)
    results = []
    if scoring is not None and card is not None and run.state == "scored":
        errors = [scores.published_errors(one.uncertainties) for one in (row, scoring)]
        results = [
            records.Reproduced(
                metric.name,
                row.scores[metric.name],
                errors[0].get(metric.name),
                scoring.scores[metric.name],
                errors[1].get(metric.name),
            )
            for metric in card.metrics
            if not metric.self_reported and metric.name in row.scores and metric.name in scoring.scores
        ]
    truth = await registry.find(row.task, run.truth_version)
    return records.Reproduction.of(
        run,
        evaluation_id=run.id,
        dataset=truth.dataset,
        eval_events=records.EvalEvents(truth.events.start, truth.events.stop),
        results=tuple(results),
        agrees=all(one.agrees for one in results) if results else None,
    )


def card_of(platform: Platform, row: Submission) -> Card | None:
    """The card of a submission's task; None if it is no longer installed."""
    task = platform.tasks.things.get(row.task)
    return task.card if task else None


async def row_of(submission_id: str) -> Submission:
    """Return the row of a submission; raises NotFound."""
    row = None
    if SUBMISSION_ID.fullmatch(submission_id):
        row = await Submission.get_or_none(id=submission_id)
    if row is None:
        raise NotFound(f"there is no submission {submission_id[:100]!r}")
    return row


async def own_row(account: AccountView, submission_id: str) -> Submission:
    """A submission of an account; raises NotFound, and Forbidden for another account's."""
    row = await row_of(submission_id)
    if row.account_id != account.id:
        raise Forbidden(f"submission {submission_id} is of {row.hub_username}: only this account can do this")
    return row


async def list_submissions(
    platform: Platform,
    *,
    limit: int,
    task: str | None = None,
    challenge: str | None = None,
    account_id: int | None = None,
    participant: Participant | None = None,
    unverified: bool = False,
    after: str | None = None,
) -> list[records.Submission]:
    """Up to ``limit`` submissions, newest first, following the submission ``after``.

    ``task`` may name a challenge, too. ``unverified``: only those with self-reported metrics that are not
    verified yet. Raises NotFound for an unknown challenge or task, and UnknownCursor.
    """
    query = Submission.all() if after is None else Submission.filter(await _after(after))
    if task is not None:
        query = query.filter(**{await _named(platform, task): task})
    if challenge is not None:
        query = query.filter(challenge=(await challenges.get(challenge)).name)
    if account_id is not None:
        query = query.filter(account_id=account_id)
    if participant is not None:
        query = query.filter(participant=participant)
    if unverified:
        query = query.filter(task__in=_self_reporting(platform), verified_at__isnull=True)
    return await _listed(platform, query, limit)


async def list_self_reported(
    platform: Platform, name: str, *, limit: int, after: str | None = None
) -> list[records.Submission]:
    """As :func:`list_submissions`, those outside a challenge's leaderboard that only report measurements.

    Raises NotFound, and UnknownCursor.
    """
    challenge = await challenges.visible(name)
    task = platform.tasks.find(challenge.task)
    query = Submission.all() if after is None else Submission.filter(await _after(after))
    query = query.filter(
        challenge=challenge.name,
        truth_version=challenge.truth_version,
        evaluation_id__isnull=True,
        baseline=False,
        standing="ranked",
    )
    return await _listed(platform, query, limit) if task.card.ranks_measured else []


async def _listed(platform: Platform, query: QuerySet[Submission], limit: int) -> list[records.Submission]:
    rows = await query.order_by("-submitted_at", "-id").limit(limit)
    of = await challenges.by_name({row.challenge for row in rows})
    return [
        view(row, unranked=why_unranked(row, of.get(row.challenge), card_of(platform, row))) for row in rows
    ]


def why_unranked(row: Submission, challenge: Challenge | None, card: Card | None) -> str | None:
    """Return why a submission is not on the current leaderboard; None if it is."""
    if row.standing != "ranked":
        return f"{_STANDINGS[row.standing]}{': ' if row.standing_reason else ''}{row.standing_reason or ''}"
    if challenge is None or row.truth_version != challenge.truth_version:
        final = row.truth_version.final
        if row.evaluation_id and final and challenge and challenge.truth_version == final:
            return "its model has no scores on the final events"
        return f"scored against an older truth, {row.truth_version}"
    if scores.is_self_reported(card, row):
        return "self-reported: ranked are models that the platform has run (collidium submit --model)"
    return "no score of the primary metric" if row.rank_score is None else None


async def _after(submission_id: str) -> Q:
    row = None
    if SUBMISSION_ID.fullmatch(submission_id):
        row = await Submission.get_or_none(id=submission_id).only("id", "submitted_at")
    if row is None:
        raise UnknownCursor
    # The first condition is a range of an index, which the second one alone is not.
    earlier = Q(submitted_at__lt=row.submitted_at) | Q(id__lt=row.id)
    return Q(submitted_at__lte=row.submitted_at) & earlier


async def _named(platform: Platform, name: str) -> Literal["task", "challenge"]:
    """Return what has this name; a task's own challenge has the same. Raises NotFound."""
    challenge = await challenges.find(name)
    if challenge is None and name not in platform.tasks.things:
        raise await tasklist.unknown(name)
    return "task" if challenge is None or challenge.task == name else "challenge"


def _self_reporting(platform: Platform) -> list[str]:
    """The installed tasks with self-reported metrics, which operators verify."""
    return [
        name
        for name, task in platform.tasks.things.items()
        if not task.card.ranks_measured and any(metric.self_reported for metric in task.card.metrics)
    ]


def view(
    row: Submission,
    truth: TruthRecord | None = None,
    earlier: Sequence[records.EarlierScores] = (),
    unranked: str | None = None,
    *,
    is_practice: bool = False,
) -> records.Submission:
    """Return the public record of a row; ``is_practice``: everybody can read its truth."""
    of_file: dict[str, Any] = {}
    if row.model is not None:
        # A model could encode hidden events in the hash and size of its predictions.
        of_file = {"sha256": row.model["sha256"], "size_bytes": row.model["file_bytes"], "rows": None}
    return records.Submission.of(
        row,
        **derived(row),
        **of_file,
        warnings=tuple(row.warnings),
        dataset=truth.dataset if truth else None,
        dataset_revision=truth.revision if truth else None,
        practice=records.PUBLIC_TRUTH if is_practice or (truth and truth.is_published) else None,
        earlier_scores=tuple(earlier),
        unranked=unranked,
    )


def derived(row: Submission) -> dict[str, Any]:
    """The fields of records that differ from columns of the row."""
    return {
        "submission_id": row.id,
        "uncertainties": scores.published_errors(row.uncertainties),
        "model_claim": claim_of(row),
        "model": None if row.model is None else convert(row.model, records.EvaluatedModel),
    }


def claim_of(row: Submission) -> Claim | None:
    """The state of the claim to a row's model; None without a model."""
    return None if row.model_repo is None else cast("Claim", row.model_claim or "unverified")


async def compare(submission_id: str, other_id: str) -> records.Comparison:
    """The differences of two submissions, first minus other, in their common metrics.

    If the same scorer scored both on the same events, common fluctuations of the events cancel in the error.
    Errors of models have one digit. Raises NotFound, and InvalidInput for submissions to different tasks.
    """
    rows = await row_of(submission_id), await row_of(other_id)
    one, other = rows
    if one.task != other.task:
        raise InvalidInput(f"{submission_id} is of {one.task}, and {other_id} of {other.task}")
    versions = {(row.scorer_version, row.truth_version) for row in rows}
    draws = [await scores.replicates_of(row.id, row.scorer_version, row.truth_version) for row in rows]
    # Those that kept public draws when the version got secret ones are paired with none.
    seed = await draw_seeds.find(one.task, one.truth_version)
    is_same = len(versions) == 1 and all(drawn.seed == seed for drawn in draws)
    found = {}
    for name in one.scores.keys() & other.scores.keys():
        paired = is_same and all(name in of for of in draws)
        found[name] = records.Difference(
            value=one.scores[name] - other.scores[name],
            uncertainty=_error_of_difference(name, rows, draws if paired else None),
            paired=paired,
        )
    return records.Comparison(
        submission_id=one.id,
        other_id=other.id,
        differences={name: found[name] for name in one.scores if name in found},
    )


def _error_of_difference(
    name: str, rows: tuple[Submission, Submission], draws: list[Replicates] | None
) -> float | None:
    """The error of a difference, from paired draws if there are any; None if it is unknown."""
    errors = [(row.uncertainties or {}).get(name) for row in rows]
    if draws is not None:
        error = draws[0].error_of_gain(name, draws[1])
    elif errors[0] is None or errors[1] is None:
        return None
    else:
        error = hypot(errors[0], errors[1])
    return scores.published_error(error, 1 if any(row.evaluation_id for row in rows) else 2)
