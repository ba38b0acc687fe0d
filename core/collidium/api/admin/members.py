"""``/admin/challenges/<challenge>/members``, ``/teams``: who may submit to a challenge, and with whom."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring, validate_request

from collidium.api.admin.benchmarks import by
from collidium.api.answers import Page, answer, id_cursor, page_of
from collidium.api.idempotency import idempotent
from collidium.api.schemas import DissolveBody, InvitationBody, MembersBody
from collidium.benchmarks import members
from collidium.benchmarks.submissions import roster
from collidium.records import Invitation, Member, MembersAdded, Team

blueprint = Blueprint("members", __name__, url_prefix="/challenges/<challenge>")


@blueprint.get("/members")
@operation_id("members")
@validate_querystring(Page)
@document_response(list[Member])
async def list_(challenge: str, query_args: Page) -> Response:
    """The members of a challenge, those added last first."""
    rows, cursor = await members.list_members(challenge, limit=query_args.limit, before=id_cursor(query_args))
    return page_of(rows, query_args, cursor).response()


@blueprint.post("/members")
@operation_id("add_members")
@validate_request(MembersBody)
@document_response(MembersAdded)
@idempotent
async def add(challenge: str, data: MembersBody) -> Response:
    """Add accounts to the members of a challenge, all or none."""
    return answer(await members.add(challenge, data.hub_usernames, **by()))


@blueprint.delete("/members/<hub_username>")
@operation_id("remove_member")
@document_response(Member)
@idempotent
async def remove(challenge: str, hub_username: str) -> Response:
    """Take an account from the members of a challenge; the invitations to be one end."""
    return answer(await members.remove(challenge, hub_username, **by()))


@blueprint.post("/invitations")
@operation_id("invite")
@validate_request(InvitationBody)
@document_response(Invitation, 201)
async def invite(challenge: str, data: InvitationBody) -> Response:
    """Make an invitation to a challenge's members. It takes no key: its code is kept nowhere."""
    made = await members.invite(challenge, uses=data.uses, expires_at=data.expires_at, **by())
    return answer(made, 201)


@blueprint.delete("/teams/members/<hub_username>")
@operation_id("remove_member_of_team")
@document_response(Team)
@idempotent
async def remove_of_team(challenge: str, hub_username: str) -> Response:
    """Take an account out of its team, with all that it has submitted; the answer is the team as it was."""
    return answer(await roster.remove_from_team(challenge, hub_username, **by()))


@blueprint.post("/teams/dissolve")
@operation_id("dissolve_team")
@validate_request(DissolveBody)
@document_response(Team)
@idempotent
async def dissolve(challenge: str, data: DissolveBody) -> Response:
    """Take a team apart: what was submitted for it competes for the accounts that sent it."""
    return answer(await roster.dissolve_team(challenge, data.name, **by()))
