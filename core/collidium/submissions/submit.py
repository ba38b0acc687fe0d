"""Submits predictions: scores a file, then keeps it with its place on the leaderboard and rewards.

A file is kept once per account or team; everything about it is written in one transaction.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tortoise.exceptions import IntegrityError
from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import accounts, challenges, outbox, records
from collidium.challenges import Challenge, gate
from collidium.contracts.identity import USERNAME
from collidium.database import transactional
from collidium.errors import Conflict, InvalidInput, TooManyRequests, Unavailable
from collidium.model_runs import model_queue
from collidium.outbox import canonical_url
from collidium.runtime.failpoints import reached
from collidium.scoring.predictions import ExtraColumns
from collidium.submissions import scores
from collidium.submissions.admissions import Admission, received, require_submission_left, team_of
from collidium.submissions.models import Submission
from collidium.submissions.reading import Claim, view, why_unranked
from collidium.submissions.rewards import RewardRules, is_paid, reward_bests

if TYPE_CHECKING:
    from collidium.accounts.identities import Identities
    from collidium.contracts.identity import Identity
    from collidium.platform import Platform
    from collidium.scoring.engine import ScoringResult
    from collidium.settings import Settings


logger = logging.getLogger(__name__)

CheckClaim = Callable[[str], Awaitable[Claim | None]]

#: Maximum length of the normalised URL of code or paper.
LONGEST_LINK: Final = 500
MODEL_REPO: Final = re.compile(f"{USERNAME.pattern}/{USERNAME.pattern}")


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions that was received."""

    path: Path
    sha256: str
    size_bytes: int
    #: ``NAMESPACE/NAME:PATH@COMMIT``, where it came from the hub.
    from_hub: str | None = None


@dataclass(frozen=True, slots=True)
class SubmitOutcome:
    """The outcome of a submission; ``deduplicated`` if its account or team sent the same file before."""

    submission: records.Submission
    deduplicated: bool


async def check(platform: Platform, admission: Admission, predictions: Predictions) -> ScoringResult:
    """Score without keeping anything; raises InvalidInput with all problems, and Forbidden."""
    result = await scores.score(
        platform, admission.task, admission.truth.version, predictions.path, predictions.sha256
    )
    await accounts.require_not_banned(admission.account.id)
    return result


async def submit(
    platform: Platform,
    admission: Admission,
    predictions: Predictions,
    *,
    check_claim: CheckClaim,
    model_repo: str | None = None,
    extra_columns: ExtraColumns = "refuse",
) -> SubmitOutcome:
    """Score predictions, keep them, and pay for new bests.

    Idempotent: the same file by the same account, or by another member of its team, returns the first
    submission, and links it to the model if it has none. Nothing is written on an error.

    Raises
    ------
    InvalidInput
        With every problem of the file.
    Conflict
        The same file is linked to another model; or the challenge closed meanwhile.
    Forbidden
        The account was banned meanwhile.
    TooManyRequests
        The participant's submissions of the day are used up.
    """
    validated_links({"model_repo": model_repo})
    submission = _submission(admission, predictions, model_repo)
    first = await _same_file(submission, admission)
    if first is None:
        if admission.refusal is not None:
            raise admission.refusal
        await received(platform, admission)
    if model_repo is not None and (first is None or first.model_repo is None):
        submission.model_claim = await check_claim(model_repo) or "unverified"
    if first is not None:
        return await _again(first, submission, admission)
    await require_submission_left(admission, platform.settings, now())
    return await _score_and_keep(platform, admission, submission, predictions.path, extra_columns)


async def submit_predicted(
    platform: Platform,
    admission: Admission,
    predictions: Predictions,
    model: Mapping[str, Any],
) -> None:
    """Score the predictions of the admission's model as :func:`submit` does, and end its evaluation.

    ``model`` is its card. Raises as :func:`submit`, and LeaseLost.
    """
    evaluation = admission.evaluation
    if evaluation is None:
        raise ValueError("predictions of no model")
    submission = _submission(admission, predictions, evaluation.model_repo)
    submission.model_claim, submission.model = evaluation.model_claim, dict(model)
    submission.evaluation_id = evaluation.id
    first = await _same_file(submission, admission)
    if first is None:
        outcome = await _score_and_keep(platform, admission, submission, predictions.path, "refuse")
        if not outcome.deduplicated:
            return
        submission_id = outcome.submission.submission_id
    else:
        submission_id = first.id
    await model_queue.mark_scored(evaluation, submission_id, predictions.sha256, submission.truth_version)


def _submission(admission: Admission, predictions: Predictions, model_repo: str | None) -> Submission:
    account, task = admission.account, admission.task
    return Submission(
        id=uuid.uuid4().hex,
        challenge=admission.challenge.name,
        task=task.card.name,
        account_id=account.id,
        hub_username=account.hub_username,
        standing="practice" if admission.practice else "ranked",
        baseline=account.baseline,
        sha256=predictions.sha256,
        size_bytes=predictions.size_bytes,
        model_repo=model_repo,
        from_hub=predictions.from_hub,
        scorer_version=task.version,
        truth_version=admission.truth.version,
    )


async def _score_and_keep(
    platform: Platform,
    admission: Admission,
    submission: Submission,
    path: Path,
    extra_columns: ExtraColumns,
) -> SubmitOutcome:
    task, version = admission.task, admission.truth.version
    result = await scores.score(platform, task, version, path, submission.sha256, extra_columns)
    if admission.evaluation is not None:
        result = replace(result, held_back=None)  # the model was not run on these events
    result = scores.with_measured_errors(task.card, submission.model, result)
    reached("evaluate.scored")
    # Checked again before the file is stored. It is stored before the transaction and named by its content:
    # a kill in between leaves a file that a retry uses.
    await accounts.require_not_banned(submission.account_id)
    await platform.storage.put(scores.storage_key(submission.sha256), path)
    outcome = await _keep(platform, admission, submission, result)
    if not outcome.deduplicated:
        platform.plugins.announce(
            "collidium_submission_scored", submission=records.as_json(outcome.submission)
        )
    return outcome


async def _keep(
    platform: Platform, admission: Admission, submission: Submission, result: ScoringResult
) -> SubmitOutcome:
    try:
        return await _keep_once(platform.settings, admission, submission, result)
    except IntegrityError:
        # Another request of this account kept the same file first.
        first = await _same_file(submission, admission)
        if first is None:
            raise
        return await _again(first, submission, admission)


@transactional
async def _keep_once(
    settings: Settings, admission: Admission, submission: Submission, result: ScoringResult
) -> SubmitOutcome:
    card, truth = admission.task.card, admission.truth
    # Lock order, to prevent deadlocks: the challenge, then the account.
    challenge = await challenges.locked(submission.challenge)
    await accounts.require_not_banned(submission.account_id)
    _require_unchanged(challenge, submission, admission)
    # The account may have joined or left a team meanwhile.
    team = await team_of(submission.account_id, challenge.name)
    admission = replace(admission, team=team)
    if first := await _same_file(submission, admission):
        return await _again(first, submission, admission)
    await gate.require_concealed(challenge, submission.truth_version)
    submission.participant, submission.team = admission.participant, team.name if team else None
    submission.submitted_at = now()
    await require_submission_left(admission, settings, submission.submitted_at)
    submission.rows = result.rows
    submission.update_from_dict(
        scores.shown(
            card,
            submission,
            result.metrics,
            result.uncertainties,
            [*result.warnings, *result.missing],
        )
    )
    if not admission.practice:
        submission.rank_score = scores.rank_score(card, submission)
        await represent(submission)
    if admission.evaluation is not None and any(metric.self_reported for metric in card.metrics):
        submission.verified_at = submission.submitted_at
    rewarded = is_paid(settings, challenge, truth)
    rules = RewardRules.of(settings, submission.truth_version, rewarded=rewarded)
    submission.credits_earned = await reward_bests(card, submission, truth.floors, result.replicates, rules)
    await submission.save(force_create=True)
    versions = submission.scorer_version, submission.truth_version
    await scores.keep(submission.id, card, versions, result, scored_at=submission.submitted_at, applied=True)
    await challenges.bump_revision(challenge)
    kept = view(submission, truth, unranked=why_unranked(submission, challenge, card))
    await outbox.announce("scored", [submission.account_id], submission.id, records.as_json(kept))
    if admission.evaluation is not None:
        await model_queue.mark_scored(
            admission.evaluation, submission.id, submission.sha256, submission.truth_version
        )
        reached("evaluate.before_commit")
    return SubmitOutcome(kept, deduplicated=False)


def _require_unchanged(challenge: Challenge, submission: Submission, admission: Admission) -> None:
    """Raise Conflict if the challenge closed since the admission, and Unavailable if its truth changed."""
    if challenge.ended_at is not None and not admission.practice:
        raise Conflict(f"{challenge.name} closed while the file was received and scored")
    version, scored = challenge.truth_version, submission.truth_version
    if admission.practice:
        is_scored_so = version is not None and version.whole == scored.whole
    else:
        is_scored_so = version == scored
    if not (challenge.listed or admission.early) or not is_scored_so:
        raise Unavailable(
            "the task changed while the file was received and scored; submit it again", retry_after=1
        )


@transactional
async def _again(first: Submission, again: Submission, admission: Admission) -> SubmitOutcome:
    """Return the first submission of a file, and link it to the model if it has none.

    Raises Conflict if another model is linked.
    """
    if again.model_repo not in {None, first.model_repo}:
        if first.account_id != again.account_id:
            raise Conflict(
                f"this file is submission {first.id} of {first.hub_username}: "
                "only its owner can link it to a model"
            )
        challenge = await challenges.locked(first.challenge)
        await accounts.require_not_banned(first.account_id)
        first = await Submission.select_for_update().get(id=first.id)
        if first.model_repo is None:
            await link(challenge, first, {"model_repo": again.model_repo, "model_claim": again.model_claim})
        elif first.model_repo != again.model_repo:
            raise Conflict(
                f"this file is submission {first.id}, which is linked to the model {first.model_repo}; "
                f"change that link instead (PATCH /v1/submissions/{first.id})"
            )
    unranked = why_unranked(first, await challenges.find(first.challenge), admission.task.card)
    return SubmitOutcome(
        view(first, unranked=unranked, is_practice=admission.truth.is_published), deduplicated=True
    )


async def _same_file(submission: Submission, admission: Admission) -> Submission | None:
    """Return the first submission of the same file; in an open challenge, by the current scorer and truth.

    For a team, a submission of any member who is not banned, except those withdrawn before joining.
    """
    own = Q(account_id=submission.account_id)
    if admission.team is not None:
        theirs = Q(participant=admission.participant)
        own = (own & (theirs | ~Q(standing="withdrawn"))) | (theirs & ~Q(standing="banned"))
    same = Submission.filter(own, challenge=submission.challenge, sha256=submission.sha256)
    if admission.refusal is None and not admission.practice:
        same = same.filter(scorer_version=submission.scorer_version, truth_version=submission.truth_version)
    return await same.order_by("submitted_at", "id").first()


async def represent(submission: Submission) -> None:
    """Let a new submission represent its participant on the leaderboard if it is the best."""
    if submission.rank_score is None:
        return
    others = Submission.filter(
        challenge=submission.challenge,
        truth_version=submission.truth_version,
        participant=submission.participant,
        represents=True,
    )
    best = await others.get_or_none()
    if best is None or submission.rank_score > (best.rank_score or 0):
        await others.update(represents=False)
        submission.represents = True


# -- links ------------------------------------------------------------------------------------------------


async def check_claim(
    identities: Identities, identity: Identity, token: str, model_repo: str
) -> Claim | None:
    """Check a claim to a model repository with the submitter's token; None if the hub is unavailable.

    Raises TooManyRequests past the rate limit.
    """
    try:
        visible = await identities.sees_model(identity, token, model_repo)
    except TooManyRequests:
        raise
    except Exception as error:
        # The message of a third-party provider may contain the token.
        logger.info("the claim of %s was not checked: %s", model_repo, type(error).__name__)
        return None
    if not visible:
        return "missing"
    owner = model_repo.partition("/")[0].casefold()
    own = {name.casefold() for name in (identity.username, *identity.organisations)}
    return "verified" if owner in own else "unverified"


def validated_links(links: Mapping[str, str | None]) -> dict[str, str | None]:
    """Normalise ``model_repo``, ``code_url`` and ``paper_url``; raises InvalidInput with all problems."""
    kept: dict[str, str | None] = {}
    errors: list[Mapping[str, Any]] = []
    for name, link in links.items():
        try:
            kept[name] = link if link is None else _validated(name, link)
        except InvalidInput as error:
            errors += error.errors
    InvalidInput.raise_for(errors)
    return kept


def _validated(name: str, link: str) -> str:
    problem = ""
    if name == "model_repo":
        if not MODEL_REPO.fullmatch(link):
            problem = f"it is written NAMESPACE/NAME, not {link[:200]!r}"
    else:
        link = canonical_url(link, field=name)
        if len(link) > LONGEST_LINK:
            problem = f"it is longer than {LONGEST_LINK} characters"
    if problem:
        raise InvalidInput(problem, errors=[{"field": name, "detail": problem}])
    return link


async def link(challenge: Challenge, submission: Submission, changes: Mapping[str, str | None]) -> None:
    """Write links, in a transaction that has locked both rows."""
    model = submission.model_repo, submission.model_claim
    submission.update_from_dict(dict(changes))
    await submission.save(update_fields=list(changes))
    if model != (submission.model_repo, submission.model_claim):  # shown on leaderboards
        await challenges.bump_revision(challenge)
