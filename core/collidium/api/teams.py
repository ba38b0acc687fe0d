"""``/v1/challenges/<name>/team``: how an account takes part in a challenge, and with whom."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring, validate_request

from collidium.api.answers import Page, answer, cut, id_cursor, page_of
from collidium.api.authentication import caller, memberships, signed_in
from collidium.api.context import platform
from collidium.api.schemas import InvitationBody, JoinBody, TeamBody, TeamQuery
from collidium.benchmarks import teams
from collidium.benchmarks.submissions import reading
from collidium.records import Invitation, Participation, Submission, Team

blueprint = Blueprint("teams", __name__, url_prefix="/v1/challenges/<name>")


@blueprint.get("/teams")
@operation_id("teams")
@validate_querystring(Page)
@document_response(list[Team])
async def list_(name: str, query_args: Page) -> Response:
    """The teams of a challenge and who is in them, the latest first."""
    rows, cursor = await teams.list_teams(name, limit=query_args.limit, before=id_cursor(query_args))
    return page_of(rows, query_args, cursor).response()


@blueprint.get("/team")
@signed_in
@operation_id("team")
@validate_querystring(TeamQuery)
@document_response(Participation)
async def show(name: str, query_args: TeamQuery) -> Response:
    """Whether you may submit to a challenge, your team, and the one that an invitation is to."""
    return await _participation(name, code=query_args.invitation)


@blueprint.post("/team")
@signed_in
@operation_id("new_team")
@validate_request(TeamBody)
@document_response(Participation, 201)
async def new(name: str, data: TeamBody) -> Response:
    """Make a team, and be its captain."""
    await teams.create(await caller(), name, data.name, await memberships())
    return await _participation(name, 201)


@blueprint.get("/team/submissions")
@signed_in
@operation_id("team_submissions")
@validate_querystring(Page)
@document_response(list[Submission])
async def submissions(name: str, query_args: Page) -> Response:
    """The submissions of your team, each with who sent it, newest first."""
    team = await teams.own(await caller(), name)
    found = await reading.list_submissions(
        platform(),
        limit=query_args.limit + 1,
        challenge=name,
        participant=teams.participant(team),
        after=query_args.cursor,
    )
    page, last = cut(found, query_args.limit)
    return page_of(page, query_args, last.submission_id if last else None).response()


@blueprint.post("/team/invitations")
@signed_in
@operation_id("invite_to_team")
@validate_request(InvitationBody)
@document_response(Invitation, 201)
async def invite(name: str, data: InvitationBody) -> Response:
    """Make an invitation to your team, whose captain you are; its code is shown only here."""
    account = await caller()
    return answer(await teams.invite(account, name, uses=data.uses, expires_at=data.expires_at), 201)


@blueprint.post("/join")
@signed_in
@operation_id("join")
@validate_request(JoinBody)
@document_response(Participation)
async def join(name: str, data: JoinBody) -> Response:
    """Join the team, or the members of the challenge, that an invitation is for."""
    await teams.join(await caller(), name, data.code, await memberships())
    return await _participation(name)


@blueprint.delete("/team/members/<hub_username>")
@signed_in
@operation_id("remove_from_team")
@document_response(Participation)
async def remove(name: str, hub_username: str) -> Response:
    """Leave your team, or remove another from it as its captain; not once the team has submitted."""
    await teams.remove(await caller(), name, hub_username)
    return await _participation(name)


async def _participation(name: str, status: int = 200, code: str | None = None) -> Response:
    return answer(await teams.participation(await caller(), name, await memberships(), code), status)
