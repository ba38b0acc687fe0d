"""Submissions: predictions that were scored, kept once per account and file, rewarded in one transaction."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tortoise.exceptions import IntegrityError
from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import accounts, outbox, records
from collidium.benchmarks import challenges, members, tasklist, teams
from collidium.benchmarks.models import Arrival, Challenge, Submission, Team
from collidium.benchmarks.rewards import RewardRules, midnight_before, reward_bests
from collidium.benchmarks.submissions import evaluations, links, scorings
from collidium.benchmarks.submissions.reading import view, why_unranked
from collidium.benchmarks.truth import truth_versions
from collidium.database import transactional
from collidium.errors import Conflict, TooManyRequests, Unavailable
from collidium.runtime.failpoints import reached
from collidium.scoring.parts import Part, whole
from collidium.scoring.predictions import ExtraColumns

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.benchmarks.submissions.links import CheckClaim
    from collidium.benchmarks.truth.truth_versions import TruthRecord
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.scoring.engine import Evaluation
    from collidium.settings import Settings


#: How often the lease of a file on its way is renewed before it would run out.
RENEWALS: Final = 3


@dataclass(frozen=True, slots=True)
class Admission:
    """An account whose predictions a challenge accepts, and the truth that they are scored against."""

    account: AccountView
    challenge: Challenge
    task: Task
    truth: TruthRecord
    #: Maximum size of the file, in bytes.
    largest_file: int
    #: Whether it is scored after closing, and never ranked.
    practice: bool
    #: Names the file on its way, for which the end of the challenge waits.
    arrival: str
    #: Whether it is admitted before the challenge is listed and opens.
    early: bool
    #: The team that the account is in.
    team: Team | None
    #: Why nothing new is taken; a file that was sent before is answered as it was then.
    refusal: Conflict | None = None
    #: The model that has made the predictions; None: they were sent.
    evaluation: evaluations.Evaluation | None = None

    @property
    def participant(self) -> str:
        """Who competes."""
        return participant_of(self.account, self.team, self.arrival)


def participant_of(account: AccountView, team: Team | None, arrival: str = "") -> str:
    """Who competes; each baseline stands for itself, so that all are on the leaderboard."""
    if account.baseline:
        return f"baseline:{arrival}"
    return teams.participant(team) if team else teams.alone(account.id)


@asynccontextmanager
async def admitted(
    platform: Platform,
    account: AccountView,
    name: str,
    organisations: Collection[str] = (),
    began_at: datetime | None = None,
    *,
    early: bool = False,
    again: bool = False,
) -> AsyncIterator[Admission]:
    """Admit a file of an account to a challenge, for the duration of the context.

    ``organisations`` are those of the hub that the account is in; ``began_at`` is when an upload that is
    resumed was admitted first; baselines may be ``early``, before it is listed and opens; ``again``: also a
    file that may have been sent before, where nothing new is taken.
    Raises NotFound for one that is not listed, Conflict for one that is not open, Forbidden for one that does
    not admit the account, and Unavailable for one that cannot score now.
    """
    if await challenges.find(name) is None:
        raise await tasklist.unknown(name)
    # Before its state is read: the end of the challenge then waits for the file, or it is refused here.
    lease = timedelta(seconds=platform.settings.lease_seconds)
    arrival = Arrival(id=uuid.uuid4().hex, challenge=name, leased_until=now() + lease)
    await arrival.save(force_create=True)
    renewal = asyncio.create_task(_renew(arrival.id, lease))
    try:
        row = await challenges.get(name)
        admission = await _admission(
            platform, account, row, arrival.id, organisations, began_at or now(), early
        )
        if admission.refusal is not None:
            await arrival.delete()  # nothing waits for it
            if not again or not await Submission.exists(challenge=name, account_id=account.id):
                raise admission.refusal
        yield admission
    finally:
        renewal.cancel()
        await Arrival.filter(id=arrival.id).delete()


async def readmission(platform: Platform, evaluation: evaluations.Evaluation) -> Admission:
    """Admit what a model predicted as the model was when it was received. Raises as :func:`admitted`."""
    account, row = await accounts.find(evaluation.hub_username), await challenges.get(evaluation.challenge)
    admission = await _admission(
        platform, account, row, evaluation.id, None, evaluation.received_at, early=False
    )
    if admission.refusal is not None:
        raise admission.refusal
    return replace(admission, evaluation=evaluation)


async def _renew(arrival: str, lease: timedelta) -> None:
    while True:
        await asyncio.sleep(lease.total_seconds() / RENEWALS)
        with suppress(Exception):  # the database is away: the lease may run out, as that of a killed process
            await Arrival.filter(id=arrival).update(leased_until=now() + lease)


async def _admission(
    platform: Platform,
    account: AccountView,
    row: Challenge,
    arrival: str,
    organisations: Collection[str] | None,
    began_at: datetime,
    early: bool,
) -> Admission:
    """``organisations``: None for an account that was admitted before."""
    status = tasklist.status_in(platform.tasks, row.task, row, began_at)
    early = early and (not row.listed or challenges.state_of(row, now()) == "upcoming")
    if not (status.listed or early):
        raise await tasklist.unknown(row.name)
    if row.truth_version is None or not status.installed:
        reason = await _without_truth(row) if status.installed else status.reason
        raise Unavailable(f"{row.name} takes no submissions now: {reason}", retry_after=3600)
    task = platform.tasks.get(row.task)
    practice = challenges.state_of(row, began_at) == "practice"
    part = Part.of(row.truth_version)
    version = str(replace(part, kind="public")) if practice and part else row.truth_version
    refusal = None
    try:
        if not early and (reason := challenges.why_closed(row, began_at)):
            raise Conflict(f"{row.name} takes no submissions: {reason}")
        await challenges.require_concealed(row, version)
        if organisations is not None:
            await members.require_admitted(row, account, organisations)
    except Conflict as error:
        refusal = error
    truth = await truth_versions.find(row.task, version)
    largest_file = truth_versions.largest_file(task, truth, platform.settings)
    team = await teams.team_of(account.id, row.name)
    return Admission(account, row, task, truth, largest_file, practice, arrival, early, team, refusal)


async def _without_truth(row: Challenge) -> str:
    """Why a challenge takes no predictions yet, and which of its task do."""
    others = await Challenge.filter(task=row.task, listed=True, truth_version__isnull=False).order_by("name")
    names = [other.name for other in others if challenges.state_of(other, now()) == "open"]
    reason = "it has no truth yet to score them against"
    return f"{reason}; open challenges of its task: {', '.join(names)}" if names else reason


async def require_in_time(platform: Platform, admission: Admission) -> datetime:
    """Return the moment; raises Conflict where a file is too late after the deadline."""
    # Read again: it may have been closed meanwhile.
    closes_at, moment = (await challenges.get(admission.challenge.name)).closes_at, now()
    grace = timedelta(seconds=platform.settings.deadline_grace_seconds)
    if closes_at is not None and moment > closes_at + grace and not admission.practice:
        raise Conflict(
            f"{admission.challenge.name} closed on {closes_at:%Y-%m-%d at %H:%M} UTC, and the file was not "
            f"complete {grace} later"
        )
    return moment


async def received(platform: Platform, admission: Admission) -> None:
    """Note that a file is there as a whole; raises Conflict where it came too late after the deadline."""
    moment = await require_in_time(platform, admission)
    await Arrival.filter(id=admission.arrival).update(received_at=moment)


async def quota(platform: Platform, account: AccountView, name: str) -> records.Quota:
    """What an account may still submit to a challenge; raises NotFound."""
    challenge, moment = await challenges.get(name), now()
    if not challenge.listed:
        raise await challenges.unknown(name)
    participant = participant_of(account, await teams.team_of(account.id, name))
    left = await left_today(challenge, [participant], platform.settings, moment)
    return records.Quota(
        submissions_per_day=_per_day(challenge, platform.settings),
        submissions_left=left[participant],
        resets_at=_midnight_after(moment),
        state=challenges.state_of(challenge, moment),
        opens_at=challenge.opens_at,
        closes_at=challenge.closes_at,
    )


async def left_today(
    challenge: Challenge, participants: Collection[str], settings: Settings, now: datetime
) -> dict[str, int]:
    """How many submissions each participant has left of the UTC day; 0 where none is taken now."""
    if challenges.why_closed(challenge, now):
        return dict.fromkeys(participants, 0)
    kept = await _kept_today(challenge, participants, now)
    per_day = _per_day(challenge, settings)
    return {participant: max(per_day - kept[participant], 0) for participant in participants}


async def _kept_today(challenge: Challenge, participants: Collection[str], now: datetime) -> Counter[str]:
    """Count the day's submissions of participants; of a team, what its members submitted before, too."""
    members = await teams.members_of(participants)
    theirs = Q(participant__in=list(participants)) | Q(account_id__in=list(members))
    midnight = midnight_before(now)
    files = Submission.filter(theirs, challenge=challenge.name, evaluation_id__isnull=True)
    sent = await files.filter(submitted_at__gte=midnight).values_list("participant", "account_id")
    kept: Counter[str] = Counter()
    for participant, account in [*sent, *await evaluations.counted(challenge.name, theirs, midnight)]:
        counted = {str(participant), members.get(account, str(participant))}
        kept.update(counted)
    return kept


def _per_day(challenge: Challenge, settings: Settings) -> int:
    return challenge.submissions_per_day or settings.submissions_per_day


def _midnight_after(moment: datetime) -> datetime:
    return midnight_before(moment) + timedelta(days=1)


async def require_submission_left(admission: Admission, settings: Settings, now: datetime) -> None:
    """Raise TooManyRequests when the participant's submissions of the UTC day are used up.

    Exact in the transaction that keeps a submission, under the challenge's lock; elsewhere it saves work.
    """
    if admission.evaluation is not None:
        return  # it was counted when the model was received
    challenge, per_day = admission.challenge, _per_day(admission.challenge, settings)
    kept = await _kept_today(challenge, [admission.participant], now)
    if kept[admission.participant] >= per_day:
        again = _midnight_after(now)
        raise TooManyRequests(
            f"{per_day} submissions a day are taken for {challenge.name}; the next from "
            f"{again:%Y-%m-%d} 00:00 UTC. Checks are not counted",
            retry_after=int((again - now).total_seconds()) + 1,
        )


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions that was received."""

    path: Path
    sha256: str
    size_bytes: int
    #: ``NAMESPACE/NAME:PATH@COMMIT``, where it came from the hub.
    from_hub: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a submission; ``deduplicated`` when this account sent the same file before."""

    submission: records.Submission
    deduplicated: bool


async def check(platform: Platform, admission: Admission, predictions: Predictions) -> Evaluation:
    """Score without keeping anything; raises InvalidInput with all problems, and Forbidden."""
    evaluation = await scorings.score(
        platform, admission.task, admission.truth.version, predictions.path, "refuse"
    )
    await accounts.require_not_banned(admission.account.id)
    return evaluation


async def submit(
    platform: Platform,
    admission: Admission,
    predictions: Predictions,
    *,
    check_claim: CheckClaim,
    model_repo: str | None = None,
    extra_columns: ExtraColumns = "refuse",
) -> Outcome:
    """Score predictions, keep them, and pay for new bests.

    The same file by the same account returns its first submission, linked to the model if none was linked
    yet. Raises InvalidInput with every problem found, Conflict where that is linked to another model,
    Forbidden for an account that was banned meanwhile, and TooManyRequests past the day's quota; then
    nothing was written.
    """
    links.validated({"model_repo": model_repo})
    submission = _submission(admission, predictions, model_repo)
    first = await _same_file(submission, admission)
    if first is None:
        if admission.refusal is not None:
            raise admission.refusal
        await received(platform, admission)
    if model_repo is not None and (first is None or first.model_repo is None):
        submission.model_claim = await check_claim(model_repo) or "unverified"
    if first is not None:
        return await _again(first, submission)
    await require_submission_left(admission, platform.settings, now())
    return await _score_and_keep(platform, admission, submission, predictions.path, extra_columns)


async def submit_predicted(
    platform: Platform,
    admission: Admission,
    predictions: Predictions,
    model: Mapping[str, Any],
) -> Outcome:
    """Score what the model of the admission has predicted, as :func:`submit` does, and end its evaluation.

    ``model`` is its card. Raises what :func:`submit` raises, and LeaseLost.
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
    else:
        outcome = Outcome(view(first), deduplicated=True)
    if outcome.deduplicated:
        await evaluations.mark_scored(evaluation, outcome.submission.submission_id)
    return outcome


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
) -> Outcome:
    task, version = admission.task, admission.truth.version
    evaluation = await scorings.score(platform, task, version, path, extra_columns)
    scorings.use_measured_errors(task.card, submission, evaluation)
    reached("evaluate.scored")
    # Here for the file, which is stored before the transaction and named by content: a kill in between
    # leaves a file that the retry adopts.
    await accounts.require_not_banned(submission.account_id)
    await platform.storage.put(scorings.storage_key(submission.sha256), path)
    outcome = await _keep(platform, admission, submission, evaluation)
    if not outcome.deduplicated:
        platform.plugins.announce(
            "collidium_submission_scored", submission=records.as_json(outcome.submission)
        )
    return outcome


async def _keep(
    platform: Platform, admission: Admission, submission: Submission, evaluation: Evaluation
) -> Outcome:
    try:
        return await _keep_once(platform.settings, admission, submission, evaluation)
    except IntegrityError:
        # Another request of this account kept the same file first: theirs is the submission.
        first = await _same_file(submission, admission)
        if first is None:
            raise
        return await _again(first, submission)


@transactional
async def _keep_once(
    settings: Settings, admission: Admission, submission: Submission, evaluation: Evaluation
) -> Outcome:
    card, truth = admission.task.card, admission.truth
    # The challenge's row first, then the account's, as everywhere: no deadlock.
    challenge = await Challenge.select_for_update().get(name=submission.challenge)
    await accounts.require_not_banned(submission.account_id)
    if challenge.ended_at is not None and not admission.practice:
        raise Conflict(f"{challenge.name} closed while the file was received and scored")
    version = challenge.truth_version or ""
    if admission.practice:
        is_scored_so = whole(version) == whole(submission.truth_version)
    else:
        is_scored_so = version == submission.truth_version
    if not (challenge.listed or admission.early) or not is_scored_so:
        raise Unavailable(
            "the task changed while the file was received and scored; submit it again", retry_after=1
        )
    # Whom it is submitted for may have changed meanwhile.
    team = await teams.team_of(submission.account_id, challenge.name)
    admission = replace(admission, team=team)
    if first := await _same_file(submission, admission):
        return await _again(first, submission)
    await challenges.require_concealed(challenge, submission.truth_version)
    submission.participant, submission.team = admission.participant, team.name if team else None
    submission.submitted_at = now()
    await require_submission_left(admission, settings, submission.submitted_at)
    submission.rows = evaluation.rows
    submission.update_from_dict(
        scorings.shown(
            card,
            submission,
            evaluation.metrics,
            evaluation.uncertainties,
            [*evaluation.warnings, *evaluation.missing],
        )
    )
    if not admission.practice:
        submission.rank_score = scorings.rank_score(card, submission.scores)
        await represent(submission)
    if admission.evaluation is not None and any(metric.self_reported for metric in card.metrics):
        submission.verified_at = submission.submitted_at
    rules = RewardRules.of(settings, submission.truth_version, rewarded=challenge.rewarded)
    submission.credits_earned = await reward_bests(
        card, submission, truth.floors, evaluation.replicates, rules
    )
    await submission.save(force_create=True)
    versions = submission.scorer_version, submission.truth_version
    await scorings.keep(
        *(submission.id, card, versions, evaluation), scored_at=submission.submitted_at, applied=True
    )
    challenge.revision += 1
    await challenge.save(update_fields=["revision"])
    kept = view(submission, truth, unranked=why_unranked(submission, challenge))
    await outbox.announce("scored", [submission.account_id], submission.id, records.as_json(kept))
    if admission.evaluation is not None:
        await evaluations.mark_scored(admission.evaluation, submission.id)
        reached("evaluate.before_commit")
    return Outcome(kept, deduplicated=False)


@transactional
async def _again(first: Submission, again: Submission) -> Outcome:
    """The answer to the same file once more, which links its model where none is linked.

    Raises Conflict where another one is.
    """
    if again.model_repo not in {None, first.model_repo}:
        challenge = await Challenge.select_for_update().get(name=first.challenge)
        await accounts.require_not_banned(first.account_id)
        first = await Submission.select_for_update().get(id=first.id)
        if first.model_repo is None:
            await links.link(
                challenge, first, {"model_repo": again.model_repo, "model_claim": again.model_claim}
            )
        elif first.model_repo != again.model_repo:
            raise Conflict(
                f"this file is submission {first.id}, which is linked to the model {first.model_repo}; "
                f"change that link instead (PATCH /v1/submissions/{first.id})"
            )
    unranked = why_unranked(first, await challenges.find(first.challenge))
    return Outcome(view(first, unranked=unranked), deduplicated=True)


async def _same_file(submission: Submission, admission: Admission) -> Submission | None:
    """The first submission of the file; while a challenge is open, by the scorer and truth that count.

    For a team, what its member withdrew before joining is none of it.
    """
    same = Submission.filter(
        account_id=submission.account_id, challenge=submission.challenge, sha256=submission.sha256
    )
    if admission.team is not None:
        same = same.filter(Q(participant=admission.participant) | ~Q(standing="withdrawn"))
    if admission.refusal is None and not admission.practice:
        same = same.filter(scorer_version=submission.scorer_version, truth_version=submission.truth_version)
    return await same.order_by("submitted_at", "id").first()


async def represent(submission: Submission) -> None:
    """Let a submission that is not kept yet stand on the leaderboard where it is its participant's best."""
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
