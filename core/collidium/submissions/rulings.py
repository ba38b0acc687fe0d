"""Changes of scored submissions: links, choice for the final results, withdrawal, disqualification, bans.

Ranks, bests and rewards follow in the same transaction. Paid credits stay, unless an operator takes them back
from the account's balance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import accounts, challenges, operations, records
from collidium.challenges import Challenge, members
from collidium.database import transactional
from collidium.errors import Conflict, Forbidden, NotFound
from collidium.model_runs import model_files, model_queue, model_reruns
from collidium.submissions import reading, ruling_changes, scores, submit, teams
from collidium.submissions.models import Submission, Upload
from collidium.submissions.replay import ReplayTarget
from collidium.submissions.rewards import RewardRules, is_paid, reward_bests
from collidium.submissions.ruling_changes import Begun, RankStanding, StandingChange
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform
    from collidium.submissions.submit import CheckClaim


@transactional
async def choose(account: AccountView, submission_id: str, chosen: bool) -> None:
    """Choose a submission of the account or its team for the final results, or undo that.

    Raises NotFound, Forbidden for another participant's, and Conflict after final results or while models run
    on the final events, for a submission without a rank, and when the maximum number is chosen.
    """
    row = await reading.row_of(submission_id)
    if row.account_id != account.id and not await teams.may_choose(account, row):
        sender = f"{row.hub_username} alone" if row.team is None else f"the members of {row.team}"
        raise Forbidden(f"submission {submission_id} is of {row.hub_username}: {sender} can choose it")
    challenge = await challenges.locked(row.challenge)
    if challenge.ended_at is not None:
        raise Conflict(f"{challenge.name} has its final results")
    final = challenge.truth_version and challenge.truth_version.final
    if final and await model_reruns.has_run(challenge.name, final):
        raise Conflict(f"{challenge.name} is closed, and models are run on its final events")
    others = Submission.filter(
        challenge=challenge.name,
        truth_version=challenge.truth_version,
        participant=row.participant,
        standing="ranked",
        chosen_at__isnull=False,
    ).exclude(id=row.id)
    if chosen and row.standing != "ranked":
        raise Conflict(f"the submission is {row.standing}")
    if chosen and len(taken := await others.values_list("id", flat=True)) >= challenge.final_submissions:
        raise Conflict(
            f"{challenge.final_submissions} are chosen already, the maximum: undo one of "
            f"{', '.join(map(str, taken))} first (collidium choose --not)"
        )
    await Submission.filter(id=row.id).update(chosen_at=now() if chosen else None)


async def change(
    platform: Platform,
    account: AccountView,
    submission_id: str,
    links: Mapping[str, str | None],
    final: bool | None,
    check_claim: CheckClaim,
) -> records.Submission:
    """Change the links of an account's submission (None removes one), and choose it or not, atomically.

    A model that is named is checked, also where it is the one that is linked already. Raises InvalidInput
    with every problem of the links, NotFound, Forbidden for another account's submission, and what
    :func:`choose` raises.
    """
    changes = submit.validated_links(links)
    row = await reading.own_row(account, submission_id)
    if "model_repo" in changes:
        repo = changes["model_repo"]
        claim = None if repo is None else await check_claim(repo)
        if repo is None or claim is not None or repo != row.model_repo:
            # A claim that was verified stays so while the hub is away.
            changes["model_claim"] = claim if repo is None else claim or "unverified"
    await _change_once(account, submission_id, changes, final)
    return await reading.find(platform, submission_id)


@transactional
async def _change_once(
    account: AccountView, submission_id: str, links: Mapping[str, str | None], final: bool | None
) -> None:
    if final is not None:
        await choose(account, submission_id, final)
    if links:
        row = await reading.row_of(submission_id)
        challenge = await challenges.locked(row.challenge)
        await accounts.require_not_banned(account.id)
        await submit.link(challenge, await Submission.select_for_update().get(id=row.id), links)


async def withdraw(platform: Platform, account: AccountView, submission_id: str) -> records.Submission:
    """Withdraw the account's submission permanently while its challenge is open.

    Raises NotFound, Forbidden for another account's, and Conflict if the challenge is not open, or if the
    submission has lost its rank or earned credits.
    """
    row = await reading.own_row(account, submission_id)
    challenge = await challenges.get(row.challenge)
    if challenges.state_of(challenge, now()) != "open":
        raise Conflict(f"{challenge.name} is closed: an organiser can disqualify the submission")
    # Participants do not decide who is paid; as actors their names cannot be mistaken for an operator's.
    actor = f"account:{account.id}"
    change = await _planned(platform, row, RankStanding("withdrawn"), actor, "withdraw", "", pays=False)
    await ruling_changes.run(change, row.id)
    return await reading.find(platform, submission_id)


async def preview(platform: Platform, challenge: str, submission_id: str, *, pays: bool) -> records.Ranking:
    """The changes if a ranked submission were disqualified, or a disqualified one reinstated.

    ``pays`` as in :func:`disqualify`. Raises NotFound, and Conflict for any other submission.
    """
    row = await _of(challenge, submission_id)
    new = RankStanding("ranked" if row.standing == "disqualified" else "disqualified")
    return await _reviewed(await _planned(platform, row, new, "", "", "", pays=pays), applies=False)


async def disqualify(
    platform: Platform,
    challenge: str,
    submission_id: str,
    reason: str,
    *,
    take_back: bool,
    pays: bool,
    actor: str,
    http_request_id: str,
) -> records.Ranking:
    """Take a submission off the leaderboard, for a public ``reason``, and return the changes.

    ``take_back``: take the credits that it earned, down to a balance of zero. ``pays``: pay for the bests of
    others that replace its own, which organisers may not decide. Raises NotFound, and Conflict for a
    submission without a rank.
    """
    row = await _of(challenge, submission_id)
    new = RankStanding("disqualified", reason)
    options = {"take_back": take_back, "pays": pays}
    return await _reviewed(
        await _planned(platform, row, new, actor, "disqualify", http_request_id, **options)
    )


async def reinstate(
    platform: Platform, challenge: str, submission_id: str, *, pays: bool, actor: str, http_request_id: str
) -> records.Ranking:
    """Let a disqualified submission count again; raises NotFound, and Conflict for any other."""
    row = await _of(challenge, submission_id)
    return await _reviewed(
        await _planned(platform, row, RankStanding("ranked"), actor, "reinstate", http_request_id, pays=pays)
    )


@transactional
async def ban(
    platform: Platform,
    hub_username: str,
    banned: bool,
    note: str | None = None,
    *,
    actor: str,
    http_request_id: str,
) -> AccountView:
    """Ban or unban an account; its submissions leave or return to the leaderboards, with their bests."""
    before, after = ("ranked", "banned") if banned else ("banned", "ranked")
    owner = await accounts.id_if_known(hub_username)
    sent = Submission.filter(account_id=owner, standing=before)
    # To prevent deadlocks, lock in the order of replays: all challenges by name, so that no submission is
    # kept meanwhile, then all accounts that may be paid at once.
    held = await challenges.lock_all()
    names = {row.challenge for row in await sent.only("id", "challenge")}
    begun: list[Begun] = []
    for challenge in [one for one in held if one.name in names]:
        own = sent.filter(challenge=challenge.name)
        await own.exclude(truth_version=challenge.truth_version).update(standing=after)
        if challenge.task in platform.tasks.things and await own.exists():
            change = StandingChange(
                settings=platform.settings,
                target=_target(platform, challenge),
                new=RankStanding(after),
                actor=actor,
                action="rank",
                http_request_id=http_request_id,
            )
            begun.append(await ruling_changes.begin(change, challenge, own))
    paid = set[int]().union(*(one.account_ids for one in begun))
    await accounts.lock(paid if owner is None else paid | {owner})
    account = await operations.ban(hub_username, banned, note, actor=actor, http_request_id=http_request_id)
    for one in begun:
        await ruling_changes.finish(one)
    await teams.choose_captains(account.id)
    return account


def _target(platform: Platform, challenge: Challenge) -> ReplayTarget:
    return ReplayTarget.current(challenge, platform.tasks.find(challenge.task))


async def _of(challenge: str, submission_id: str) -> Submission:
    row = await reading.row_of(submission_id)
    if row.challenge != challenge:
        raise NotFound(f"there is no submission {submission_id} to {challenge[:100]!r}")
    return row


async def _planned(
    platform: Platform,
    row: Submission,
    new: RankStanding,
    actor: str,
    action: str,
    http_request_id: str,
    *,
    take_back: bool = False,
    pays: bool = True,
) -> StandingChange:
    """A change of a submission's standing; raises Conflict if it is not on the current leaderboard."""
    challenge = await challenges.get(row.challenge)
    wanted = "disqualified" if new.standing == "ranked" else "ranked"
    if row.truth_version != challenge.truth_version or row.standing != wanted:
        raise Conflict(f"the submission is {row.standing}, or was scored against an older truth")
    return StandingChange(
        settings=platform.settings,
        target=_target(platform, challenge),
        new=new,
        actor=actor,
        action=action,
        http_request_id=http_request_id,
        about=row.id,
        take_back=take_back,
        pays=pays,
    )


async def _reviewed(change: StandingChange, *, applies: bool = True) -> records.Ranking:
    changes = await ruling_changes.reviewed(change, change.about, applies=applies)
    return records.Ranking(challenge=change.target.challenge, applied=applies, changes=changes)


@transactional
async def verify(
    platform: Platform, submission_id: str, *, actor: str, http_request_id: str
) -> records.Submission:
    """Verify the self-reported metrics of a submission, and pay for the bests that it then holds.

    Idempotent. A submission that is not on the current leaderboard raises no best and earns nothing. Raises
    NotFound, and Conflict if there is nothing to verify or the account is banned.
    """
    row = await reading.row_of(submission_id)
    task = platform.tasks.find(row.task)
    if task.card.ranks_measured:
        raise Conflict(f"task {row.task!r} ranks what the platform measures: there is nothing to verify")
    if not any(metric.self_reported for metric in task.card.metrics):
        raise Conflict(f"task {row.task!r} has no self-reported metric: there is nothing to verify")
    # Bests are decided under the challenge's lock.
    challenge = await challenges.locked(row.challenge)
    submission = await Submission.select_for_update().get(id=row.id)
    if submission.verified_at is not None:
        return await reading.find(platform, submission_id)
    try:
        await accounts.require_not_banned(submission.account_id)
    except Forbidden as error:
        raise Conflict(f"{submission.hub_username}: {error.detail}") from error
    submission.verified_at = now()
    if submission.truth_version == challenge.truth_version:
        versions = submission.scorer_version, submission.truth_version
        truth = await registry.find(task.card.name, submission.truth_version)
        floors = truth.floors
        rewarded = is_paid(platform.settings, challenge, truth)
        rules = RewardRules.of(platform.settings, submission.truth_version, rewarded=rewarded)
        replicates = await scores.replicates_of(row.id, *versions)
        submission.credits_earned += await reward_bests(task.card, submission, floors, replicates, rules)
        # Decided again in the order of submission, it might have raised a best that is higher by now.
        submission.raised_best = submission.raised_best or None
    await submission.save(update_fields=["verified_at", "credits_earned", "raised_best"])
    await challenges.bump_revision(challenge)
    details = {"task": submission.task, "credits_earned": str(submission.credits_earned)}
    await operations.record(actor, "verify", row.id, details, http_request_id)
    return await reading.find(platform, submission_id)


# -- erasure of an account --------------------------------------------------------------------------------


async def submitted_by(account_id: int) -> tuple[int, list[str]]:
    """The number of submissions of an account, and the storage keys of files that only it has sent."""
    alone = await model_files.sent_only_by(account_id, Submission)
    count = await Submission.filter(account_id=account_id).count()
    models, predicted = await model_files.submitted_by(account_id)
    predictions = [scores.storage_key(sha256) for sha256 in sorted({*alone, *predicted})]
    return count, [*predictions, *map(model_files.model_key, models)]


@transactional
async def forget(account_id: int, name: str, becomes: str) -> None:
    """Rename an erased account's submissions and remove their links, and links of others to its models.

    It leaves its teams, the member lists of challenges, and the queue of models.
    """
    rows = Submission.filter(account_id=account_id)
    linked = Submission.filter(Q(account_id=account_id) | Q(model_repo__istartswith=f"{name}/"))
    names = set(map(str, await linked.values_list("challenge", flat=True))) | await teams.challenges_of(
        account_id
    )
    for challenge in await challenges.lock_all(names):
        await challenges.bump_revision(challenge)
    await teams.forget(account_id, name)
    await members.forget(name)
    await linked.update(model_repo=None, model_claim=None)
    await rows.update(hub_username=becomes, code_url=None, paper_url=None, from_hub=None)
    await Upload.filter(account_id=account_id).delete()
    await model_queue.forget(account_id, becomes)
