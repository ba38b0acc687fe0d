"""Admissions: who may submit to a challenge, for which participant, until when, and how many files a day."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import accounts, challenges, records
from collidium.challenges import Challenge, Participant, arrivals, gate, members, tasklist
from collidium.database.leases import RENEWALS
from collidium.errors import Conflict, TooManyRequests, Unavailable
from collidium.model_runs import Evaluation, model_queue
from collidium.submissions.models import Submission, Team, TeamMember
from collidium.submissions.rewards import midnight_before
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.settings import Settings
    from collidium.truth.registry import TruthRecord


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
    evaluation: Evaluation | None = None

    @property
    def participant(self) -> Participant:
        """Who competes."""
        return participant_of(self.account, self.team, self.arrival)


# -- who may submit, and for which participant ------------------------------------------------------------


def participant_of(account: AccountView, team: Team | None, arrival: str = "") -> Participant:
    """Return the participant that an account submits for."""
    if account.baseline:
        return Participant.baseline(arrival)
    return Participant.team(team.id) if team else Participant.account(account.id)


async def team_of(account_id: int, challenge: str) -> Team | None:
    """Return the team of an account in a challenge."""
    member = await TeamMember.get_or_none(challenge=challenge, account_id=account_id)
    return None if member is None else await Team.get(id=member.team_id)


async def _members_of(participants: Collection[Participant]) -> dict[int, Participant]:
    """Return the accounts in those participants that are teams, each with its team."""
    ids = [one.team_id for one in participants if one.team_id is not None]
    if not ids:
        return {}
    rows = await TeamMember.filter(team_id__in=ids).values_list("account_id", "team_id")
    return {account: Participant.team(team) for account, team in rows}


# -- admission of one file --------------------------------------------------------------------------------


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
    arrival = uuid.uuid4().hex
    await arrivals.begin(arrival, name, now() + lease)
    renewal = asyncio.create_task(_renew(arrival, lease))
    try:
        row = await challenges.get(name)
        admission = await _admission(platform, account, row, arrival, organisations, began_at or now(), early)
        if admission.refusal is not None:
            await arrivals.end(arrival)  # nothing waits for it
            own = Q(account_id=account.id) | Q(participant=admission.participant)
            if not again or not await Submission.exists(own, challenge=name):
                raise admission.refusal
        yield admission
    finally:
        renewal.cancel()
        await arrivals.end(arrival)


async def readmission(platform: Platform, evaluation: Evaluation) -> Admission:
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
            await arrivals.renew(arrival, now() + lease)


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
    early = early and (not row.listed or challenges.state_of(row, now()) == "upcoming")
    refused = await gate.refusal_of(platform.tasks, row, began_at, early=early)
    if refused is not None and refused.cause == "not listed":
        raise await tasklist.unknown(row.name)
    task, version = platform.tasks.things.get(row.task), gate.scored_version(row, began_at)
    if task is None or version is None:
        reason = refused.reason if task is None and refused else await _without_truth(row)
        raise Unavailable(f"{row.name} accepts no submissions now: {reason}", retry_after=3600)
    practice = challenges.state_of(row, began_at) == "practice"
    refusal = Conflict(f"{row.name} accepts no submissions: {refused.reason}") if refused else None
    if refusal is None and organisations is not None:
        await members.require_admitted(row, account, organisations)
    truth = await registry.find(row.task, version)
    largest_file = registry.largest_file(task, truth, platform.settings)
    team = await team_of(account.id, row.name)
    return Admission(account, row, task, truth, largest_file, practice, arrival, early, team, refusal)


async def _without_truth(row: Challenge) -> str:
    """Why a challenge takes no predictions yet, and which of its task do."""
    others = await challenges.with_truth(task=row.task, listed=True)
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
    await arrivals.complete(admission.arrival, moment)


async def quota(platform: Platform, account: AccountView, name: str) -> records.Quota:
    """What an account may still submit to a challenge; raises NotFound."""
    challenge, moment = await challenges.get(name), now()
    if not challenge.listed:
        raise await challenges.unknown(name)
    participant = participant_of(account, await team_of(account.id, name))
    refusal = await gate.refusal_of(platform.tasks, challenge, moment)
    left = await left_today(challenge, [participant], platform, moment)
    return records.Quota(
        submissions_per_day=_per_day(challenge, platform.settings),
        submissions_left=left[participant],
        resets_at=_midnight_after(moment),
        state=challenges.state_of(challenge, moment),
        opens_at=challenge.opens_at,
        closes_at=challenge.closes_at,
        reason=refusal.reason if refusal else None,
    )


async def left_today(
    challenge: Challenge, participants: Collection[Participant], platform: Platform, now: datetime
) -> dict[Participant, int]:
    """How many submissions each participant has left of the UTC day; 0 where none is taken now."""
    if await gate.refusal_of(platform.tasks, challenge, now):
        return dict.fromkeys(participants, 0)
    kept = await _kept_today(challenge, participants, now)
    per_day = _per_day(challenge, platform.settings)
    return {participant: max(per_day - kept[participant], 0) for participant in participants}


async def _kept_today(
    challenge: Challenge, participants: Collection[Participant], now: datetime
) -> Counter[Participant]:
    """Count the files and models that participants submitted on this UTC day, whatever became of them.

    Not counted are the first models that the platform failed to score. What members of a team submitted
    before they joined counts for the team, too.
    """
    in_teams = await _members_of(participants)
    theirs = Q(participant__in=list(participants)) | Q(account_id__in=list(in_teams))
    own, midnight = Q(theirs, challenge=challenge.name), midnight_before(now)
    files = Submission.filter(own, submitted_at__gte=midnight, evaluation_id__isnull=True)
    kept, failed = Counter[Participant](), Counter[Participant]()
    sent = [(*row, None) for row in await files.values_list("participant", "account_id")]
    sent += await model_queue.received_since(midnight, challenge.name, participants, in_teams)
    for participant, account, code in sent:
        of = failed if code in model_queue.FREE_AT_FIRST else kept
        of.update({participant, in_teams.get(account, participant)})
    kept.update(
        {
            of: number - model_queue.FREE_FAILURES
            for of, number in failed.items()
            if number > model_queue.FREE_FAILURES
        }
    )
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
            f"{per_day} submissions per day are accepted for {challenge.name}; the next from "
            f"{again:%Y-%m-%d} 00:00 UTC. Checks are not counted",
            retry_after=int((again - now).total_seconds()) + 1,
        )
