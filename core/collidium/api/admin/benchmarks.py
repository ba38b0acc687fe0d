"""``/admin``: tasks, submissions, models that the server runs, challenges, and their members and teams."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring, validate_request

from collidium import accounts
from collidium.api.answers import PageQuery, answer, answer_list, answer_page, id_cursor, page_of
from collidium.api.authentication import OperatorCaller, by_operator
from collidium.api.benchmarks import listed
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.evaluations import listed as listed_evaluations
from collidium.api.idempotency import idempotent
from collidium.api.operator_schemas import (
    ChallengeBody,
    ChallengeSubmissionsQuery,
    NewChallengeBody,
    NewSettingsBody,
    SettingsBody,
    SplitQuery,
    SubmissionsQuery,
)
from collidium.api.schemas import (
    AllEvaluationsQuery,
    CorrectionBody,
    DisqualifyBody,
    DissolveBody,
    InvitationBody,
    LeaveOutBody,
    MembersBody,
    OpenQuery,
    RefreshBody,
    RescoreBody,
)
from collidium.challenges import members, tasklist
from collidium.errors import Conflict, NotFound
from collidium.model_runs import model_queue
from collidium.operations import Scope
from collidium.organising import changes, closing
from collidium.organising import roster as people
from collidium.records import (
    Challenge,
    Evaluation,
    Invitation,
    Member,
    MembersAdded,
    Ranking,
    Rescoring,
    RosterEntry,
    SplitPreview,
    Submission,
    TaskStatus,
    Team,
    WaitingFile,
)
from collidium.submissions import reading, reruns, rescoring, rulings, waiting

blueprint = Blueprint("benchmarks", __name__)


@blueprint.get("/tasks")
@document_response(list[TaskStatus])
async def tasks() -> Response:
    """The installed or listed tasks by name, with the reason if one accepts no submissions."""
    return answer_list(await tasklist.list_tasks(platform().tasks))


@blueprint.get("/submissions")
@validate_querystring(SubmissionsQuery)
@document_response(list[Submission])
@raises(NotFound)
async def submissions(query_args: SubmissionsQuery) -> Response:
    """Submissions of all accounts, newest first, without their earlier scores."""
    account_id = await accounts.id_of(query_args.user)
    return await listed(query_args, account_id, unverified=query_args.unverified)


@blueprint.post("/submissions/<submission_id>/verify")
@document_response(Submission)
@idempotent
async def verify(caller: OperatorCaller, submission_id: str) -> Response:
    """Verify the self-reported scores of a submission, which then earn their reward once."""
    verified = await rulings.verify(platform(), submission_id, **caller.audit)
    return answer(verified)


@blueprint.post("/challenges")
@operation_id("new_challenge")
@validate_request(NewChallengeBody)
@document_response(Challenge, 201)
@idempotent
@raises(NotFound)
async def new(caller: OperatorCaller, data: NewSettingsBody) -> Response:
    """Create a challenge of a task, with the task's truth."""
    fields = data.model_dump(exclude_unset=True, exclude={"name", "task"})
    made = await changes.create(platform(), data.name, data.task, fields, **caller.audit)
    return answer(made, 201)


@blueprint.patch("/challenges/<challenge>")
@operation_id("edit_challenge")
@validate_request(ChallengeBody)
@document_response(Challenge)
@idempotent
async def edit(caller: OperatorCaller, challenge: str, data: SettingsBody) -> Response:
    """Change settings of a challenge; omitted fields stay as they are. Organisers cannot change rewards."""
    fields = data.model_dump(exclude_unset=True)
    if "rewarded" in fields:
        caller.require(Scope.BENCHMARKS)
    alone = not caller.may(Scope.BENCHMARKS)
    return answer(await changes.edit(platform(), challenge, fields, alone=alone, **caller.audit))


@blueprint.get("/challenges/<challenge>/split")
@operation_id("preview_split")
@validate_querystring(SplitQuery)
@document_response(SplitPreview)
@by_operator
@raises(Conflict)
async def preview_split(caller: OperatorCaller, challenge: str, query_args: SplitQuery) -> Response:
    """Preview of a public part: the tasks and challenges that it closes to submissions, and until when.

    Of a challenge, or of a new one of `task`.
    """
    preview = await changes.preview_split(
        platform(),
        challenge,
        query_args.public_percent,
        task=query_args.task,
        truth_version=query_args.truth_version,
        closes_at=query_args.closes_at,
        alone=not caller.may(Scope.BENCHMARKS),
    )
    return answer(preview)


@blueprint.patch("/challenges/<challenge>/announcements")
@operation_id("correct_announcement")
@validate_request(CorrectionBody)
@document_response(Challenge)
@idempotent
async def correct_announcement(caller: OperatorCaller, challenge: str, data: CorrectionBody) -> Response:
    """Correct or withdraw an announcement."""
    corrected = await changes.correct_announcement(platform(), challenge, data.at, data.text, **caller.audit)
    return answer(corrected)


@blueprint.post("/challenges/<challenge>/close")
@operation_id("close_challenge")
@document_response(Challenge)
@idempotent
async def close(caller: OperatorCaller, challenge: str) -> Response:
    """Close a challenge; its final results follow when all submissions in progress are scored."""
    return answer(await closing.close(platform(), challenge, **caller.audit))


@blueprint.post("/challenges/<challenge>/open")
@operation_id("open_challenge")
@validate_querystring(OpenQuery)
@document_response(Challenge)
@idempotent
async def open_(caller: OperatorCaller, challenge: str, query_args: OpenQuery) -> Response:
    """Open or reopen a challenge; not after results on its hidden events were shown."""
    alone = not caller.may(Scope.BENCHMARKS)
    opened = await closing.reopen(platform(), challenge, query_args.closes_at, alone=alone, **caller.audit)
    return answer(opened)


@blueprint.post("/challenges/<challenge>/refresh-hidden")
@operation_id("refresh_hidden")
@validate_request(RefreshBody)
@document_response(Challenge)
@idempotent
async def refresh_hidden(caller: OperatorCaller, challenge: str, data: RefreshBody) -> Response:
    """Switch an open challenge to new hidden events, and run its models on them.

    Earlier scores are kept. Predictions that were submitted as files belong to the old events and lose their
    ranks.
    """
    caller.require(Scope.BENCHMARKS)
    return answer(await reruns.refresh(platform(), challenge, data.truth_version, **caller.audit))


@blueprint.get("/challenges/<challenge>/submissions")
@operation_id("challenge_submissions")
@validate_querystring(ChallengeSubmissionsQuery)
@document_response(list[Submission])
async def challenge_submissions(challenge: str, query_args: ChallengeSubmissionsQuery) -> Response:
    """All submissions to a challenge, newest first, including those without a rank."""
    found = await reading.list_submissions(
        platform(),
        limit=query_args.limit + 1,
        challenge=challenge,
        account_id=await accounts.id_of(query_args.user),
        after=query_args.cursor,
    )
    return answer_page(found, query_args, lambda last: last.submission_id)


@blueprint.get("/challenges/<challenge>/roster")
@operation_id("roster")
@validate_querystring(PageQuery)
@document_response(list[RosterEntry])
async def roster(challenge: str, query_args: PageQuery) -> Response:
    """Participants of a challenge by name, including members and teams without submissions."""
    found = await people.roster(platform(), challenge, limit=query_args.limit + 1, after=query_args.cursor)
    return answer_page(found, query_args, lambda last: last.hub_username)


@blueprint.get("/challenges/<challenge>/submissions/<submission_id>/standing")
@document_response(Ranking)
@by_operator
@raises(Conflict)
async def preview_standing(caller: OperatorCaller, challenge: str, submission_id: str) -> Response:
    """Preview of disqualifying a submission, or of reinstating a disqualified one."""
    pays = caller.may(Scope.BENCHMARKS)
    return answer(await rulings.preview(platform(), challenge, submission_id, pays=pays))


@blueprint.post("/challenges/<challenge>/submissions/<submission_id>/disqualify")
@validate_request(DisqualifyBody)
@document_response(Ranking)
@idempotent
async def disqualify(
    caller: OperatorCaller, challenge: str, submission_id: str, data: DisqualifyBody
) -> Response:
    """Remove a submission from its leaderboard, and update ranks, bests and later rewards."""
    if data.take_back:
        caller.require(Scope.BENCHMARKS)
    return answer(
        await rulings.disqualify(
            platform(),
            challenge,
            submission_id,
            data.reason,
            take_back=data.take_back,
            pays=caller.may(Scope.BENCHMARKS),
            **caller.audit,
        )
    )


@blueprint.post("/challenges/<challenge>/submissions/<submission_id>/reinstate")
@document_response(Ranking)
@idempotent
async def reinstate(caller: OperatorCaller, challenge: str, submission_id: str) -> Response:
    """Rank a disqualified submission again."""
    pays = caller.may(Scope.BENCHMARKS)
    return answer(await rulings.reinstate(platform(), challenge, submission_id, pays=pays, **caller.audit))


@blueprint.post("/challenges/<challenge>/rescoring")
@operation_id("rescore")
@validate_request(RescoreBody)
@document_response(Rescoring, 202)
@idempotent
async def rescore(caller: OperatorCaller, challenge: str, data: RescoreBody) -> Response:
    """Score all submissions to a challenge again, with the current scorer and truth, or on a public part.

    Runs in the background; `GET` returns the progress. Without `apply`, it only reports what would change.
    """
    ordered = await rescoring.order(
        platform(),
        challenge,
        percent=data.public_percent,
        apply=data.apply,
        pays=caller.may(Scope.BENCHMARKS),
        **caller.audit,
    )
    return answer(ordered, 202)


@blueprint.get("/challenges/<challenge>/rescoring")
@operation_id("rescoring")
@document_response(Rescoring)
async def last_rescoring(challenge: str) -> Response:
    """The last rescoring of a challenge: its progress, or its changes."""
    return answer(await rescoring.find(challenge))


@blueprint.get("/challenges/<challenge>/waiting")
@operation_id("waiting_files")
@document_response(list[WaitingFile])
async def waiting_files(challenge: str) -> Response:
    """Submissions that a rescoring or the end of a challenge waits for, or that were left out."""
    return answer_list(await waiting.find(challenge))


@blueprint.post("/challenges/<challenge>/waiting/retry")
@operation_id("retry_waiting")
@document_response(list[WaitingFile])
@idempotent
async def retry_waiting(caller: OperatorCaller, challenge: str) -> Response:
    """Try the files that wait in a challenge again, now and for another day."""
    return answer_list(await waiting.retry(challenge, **caller.audit))


@blueprint.post("/challenges/<challenge>/submissions/<submission_id>/leave-out")
@operation_id("leave_out")
@validate_request(LeaveOutBody)
@document_response(WaitingFile)
@idempotent
async def leave_out(
    caller: OperatorCaller, challenge: str, submission_id: str, data: LeaveOutBody
) -> Response:
    """Wait no longer for a submission whose file cannot be scored: it loses its rank with the new scores."""
    return answer(await waiting.leave_out(challenge, submission_id, data.reason, **caller.audit))


@blueprint.get("/evaluations")
@operation_id("evaluations")
@validate_querystring(AllEvaluationsQuery)
@document_response(list[Evaluation])
@raises(NotFound)
async def list_evaluations(query_args: AllEvaluationsQuery) -> Response:
    """Models of all accounts that the server runs or ran, newest first."""
    return await listed_evaluations(query_args, await accounts.id_of(query_args.user))


@blueprint.post("/evaluations/<evaluation_id>/cancel")
@operation_id("cancel_evaluation")
@document_response(Evaluation)
@idempotent
async def cancel(caller: OperatorCaller, evaluation_id: str) -> Response:
    """Cancel the evaluation of any account's model."""
    return answer(await model_queue.operate(evaluation_id, "cancel", **caller.audit))


@blueprint.post("/evaluations/<evaluation_id>/rerun")
@operation_id("rerun_evaluation")
@document_response(Evaluation)
@idempotent
async def rerun(caller: OperatorCaller, evaluation_id: str) -> Response:
    """Repeat an evaluation that failed or was cancelled."""
    return answer(await model_queue.operate(evaluation_id, "rerun", **caller.audit))


@blueprint.get("/challenges/<challenge>/members")
@operation_id("members")
@validate_querystring(PageQuery)
@document_response(list[Member])
async def list_members(challenge: str, query_args: PageQuery) -> Response:
    """The members of a challenge, the latest first."""
    rows, cursor = await members.list_members(challenge, limit=query_args.limit, before=id_cursor(query_args))
    return page_of(rows, query_args, cursor).response()


@blueprint.post("/challenges/<challenge>/members")
@operation_id("add_members")
@validate_request(MembersBody)
@document_response(MembersAdded)
@idempotent
async def add_members(caller: OperatorCaller, challenge: str, data: MembersBody) -> Response:
    """Add accounts to the members of a challenge, all or none."""
    return answer(await members.add(challenge, data.hub_usernames, **caller.audit))


@blueprint.delete("/challenges/<challenge>/members/<hub_username>")
@operation_id("remove_member")
@document_response(Member)
@idempotent
async def remove_member(caller: OperatorCaller, challenge: str, hub_username: str) -> Response:
    """Remove an account from the members of a challenge; unused invitations to be a member expire."""
    return answer(await members.remove(challenge, hub_username, **caller.audit))


@blueprint.post("/challenges/<challenge>/invitations")
@operation_id("invite")
@validate_request(InvitationBody)
@document_response(Invitation, 201)
@by_operator
async def invite(caller: OperatorCaller, challenge: str, data: InvitationBody) -> Response:
    """Create an invitation to a challenge's members. It takes no Idempotency-Key: its code is not stored."""
    made = await members.invite(challenge, uses=data.uses, expires_at=data.expires_at, **caller.audit)
    return answer(made, 201)


@blueprint.delete("/challenges/<challenge>/teams/members/<hub_username>")
@operation_id("remove_member_of_team")
@document_response(Team)
@idempotent
async def remove_of_team(caller: OperatorCaller, challenge: str, hub_username: str) -> Response:
    """Remove an account and its submissions from its team; returns the team before the change."""
    return answer(await people.remove_from_team(challenge, hub_username, **caller.audit))


@blueprint.post("/challenges/<challenge>/teams/dissolve")
@operation_id("dissolve_team")
@validate_request(DissolveBody)
@document_response(Team)
@idempotent
async def dissolve(caller: OperatorCaller, challenge: str, data: DissolveBody) -> Response:
    """Dissolve a team: its submissions then belong to the accounts that sent them."""
    return answer(await people.dissolve_team(challenge, data.name, **caller.audit))
