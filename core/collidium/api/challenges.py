"""``/v1/challenges``: challenges, submissions to them, and teams.

A challenge has the same sub-resources as a task.
"""

from __future__ import annotations

from quart import Blueprint, Response
from quart.blueprints import BlueprintSetupState
from quart_schema import document_response, operation_id, validate_querystring, validate_request

from collidium.api import benchmarks, leaderboards
from collidium.api.answers import PageQuery, answer, answer_list, answer_page, id_cursor, page_of
from collidium.api.authentication import Caller, signed_in
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.openapi import file_body, predictions_body, table_answer
from collidium.api.schemas import (
    HistoryQuery,
    InvitationBody,
    JoinBody,
    LeaderboardQuery,
    ResultsQuery,
    SubmitQuery,
    TeamBody,
    TeamQuery,
)
from collidium.challenges import Participant, tasklist
from collidium.errors import Conflict, Unavailable
from collidium.organising import closing
from collidium.records import (
    BestStep,
    Challenge,
    Checked,
    Invitation,
    Participation,
    Place,
    Quota,
    Receipt,
    Result,
    Submission,
    Team,
)
from collidium.submissions import admissions, reading, teams

blueprint = Blueprint("challenges", __name__, url_prefix="/v1/challenges")
teams_blueprint = Blueprint("teams", __name__, url_prefix="/v1/challenges/<name>")


@blueprint.record
def _prepare(state: BlueprintSetupState) -> None:
    state.app.extensions[leaderboards.RESULTS] = leaderboards.Results()


@blueprint.get("")
@operation_id("challenges")
@document_response(list[Challenge])
async def list_() -> Response:
    """The challenges, the next to close first; those without a deadline last."""
    return answer_list(await tasklist.list_challenges(platform()))


@blueprint.get("/<name>")
@operation_id("challenge")
@document_response(Challenge)
async def show(name: str) -> Response:
    """A challenge, with the card of its task."""
    return answer(await closing.shown(platform(), name))


@blueprint.get("/<name>/quota")
@signed_in
@document_response(Quota)
async def quota(caller: Caller, name: str) -> Response:
    """Your remaining submissions of today, and the deadline."""
    return answer(await admissions.quota(platform(), caller.account, name))


@blueprint.post("/<name>/submit")
@predictions_body
@signed_in
@operation_id("submit_to_challenge")
@validate_querystring(SubmitQuery)
@document_response(Receipt)
@raises(Conflict, Unavailable)
async def submit(caller: Caller, name: str, query_args: SubmitQuery) -> Response:
    """Submit predictions to a challenge, as to a task."""
    return await benchmarks.submitted(caller, name, query_args.model_repo)


@blueprint.post("/<name>/check")
@signed_in
@operation_id("check_for_challenge")
@file_body
@document_response(Checked)
@raises(Conflict, Unavailable)
async def check(caller: Caller, name: str) -> Response:
    """Validate predictions without submitting them, as for a task."""
    return await benchmarks.checked(caller, name)


@blueprint.get("/<name>/leaderboard")
@operation_id("challenge_leaderboard")
@validate_querystring(LeaderboardQuery)
@document_response(list[Place])
async def leaderboard(name: str, query_args: LeaderboardQuery) -> Response:
    """The leaderboard of a challenge, like that of a task."""
    return await leaderboards.leaderboard_response(name, query_args)


@blueprint.get("/<name>/results")
@table_answer
@operation_id("results")
@validate_querystring(ResultsQuery)
@document_response(list[Result])
@raises(Conflict)
async def all_results(name: str, query_args: ResultsQuery) -> Response:
    """All places of a challenge's current leaderboard in one file; `format=csv` for a table.

    With `all=true`, every submission, followed by disqualified ones (with the reason) and withdrawn ones.
    """
    return await leaderboards.results_response(name, query_args)


@blueprint.get("/<name>/leaderboard/history")
@operation_id("challenge_history")
@validate_querystring(HistoryQuery)
@document_response(list[BestStep])
async def history(name: str, query_args: HistoryQuery) -> Response:
    """The submissions that improved the best value of a metric, as for a task."""
    return await leaderboards.history_response(name, query_args)


@teams_blueprint.get("/teams")
@operation_id("teams")
@validate_querystring(PageQuery)
@document_response(list[Team])
async def list_teams(name: str, query_args: PageQuery) -> Response:
    """The teams of a challenge and their members, the latest first."""
    rows, cursor = await teams.list_teams(name, limit=query_args.limit, before=id_cursor(query_args))
    return page_of(rows, query_args, cursor).response()


@teams_blueprint.get("/team")
@signed_in
@operation_id("team")
@validate_querystring(TeamQuery)
@document_response(Participation)
@raises(Conflict)
async def show_team(caller: Caller, name: str, query_args: TeamQuery) -> Response:
    """Whether you may submit to a challenge, your team, and the team of an invitation."""
    return await _participation(caller, name, code=query_args.invitation)


@teams_blueprint.post("/team")
@signed_in
@operation_id("new_team")
@validate_request(TeamBody)
@document_response(Participation, 201)
@raises(Conflict)
async def new(caller: Caller, name: str, data: TeamBody) -> Response:
    """Create a team with you as its captain."""
    await teams.create(caller.account, name, data.name, caller.memberships)
    return await _participation(caller, name, 201)


@teams_blueprint.get("/team/submissions")
@signed_in
@operation_id("team_submissions")
@validate_querystring(PageQuery)
@document_response(list[Submission])
async def submissions(caller: Caller, name: str, query_args: PageQuery) -> Response:
    """The submissions of your team with their senders, newest first."""
    team = await teams.own(caller.account, name)
    found = await reading.list_submissions(
        platform(),
        limit=query_args.limit + 1,
        challenge=name,
        participant=Participant.team(team.id),
        after=query_args.cursor,
    )
    return answer_page(found, query_args, lambda last: last.submission_id)


@teams_blueprint.post("/team/invitations")
@signed_in
@operation_id("invite_to_team")
@validate_request(InvitationBody)
@document_response(Invitation, 201)
@raises(Conflict)
async def invite(caller: Caller, name: str, data: InvitationBody) -> Response:
    """Create an invitation to your team as its captain; its code is shown only here."""
    return answer(await teams.invite(caller.account, name, uses=data.uses, expires_at=data.expires_at), 201)


@teams_blueprint.post("/join")
@signed_in
@operation_id("join")
@validate_request(JoinBody)
@document_response(Participation)
@raises(Conflict)
async def join(caller: Caller, name: str, data: JoinBody) -> Response:
    """Join the team, or the members of the challenge, of an invitation."""
    await teams.join(caller.account, name, data.code, caller.memberships)
    return await _participation(caller, name)


@teams_blueprint.delete("/team/members/<hub_username>")
@signed_in
@operation_id("remove_from_team")
@document_response(Participation)
@raises(Conflict)
async def remove(caller: Caller, name: str, hub_username: str) -> Response:
    """Leave your team, or remove a member as its captain; not after the team has submitted."""
    await teams.remove(caller.account, name, hub_username)
    return await _participation(caller, name)


async def _participation(caller: Caller, name: str, status: int = 200, code: str | None = None) -> Response:
    return answer(await teams.participation(caller.account, name, caller.memberships, code), status)
