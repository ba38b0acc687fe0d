"""``/leaderboard/<name>/team``: the viewer's team in a challenge, and the invitations to it."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium.client import Invitation
from collidium.errors import CollidiumError, NotFound
from collidium_plugins.webapps.context import Route, backend_as_user, origin
from collidium_plugins.webapps.leaderboard import board_of
from collidium_plugins.webapps.rendering import SHOWN_ON_FORMS, refused, render, see_other, with_query

#: Submissions of a team on one page.
PAGE: Final = 20


async def show(
    name: str, refusal: CollidiumError | None = None, invitation: Invitation | None = None
) -> Response:
    """``GET /leaderboard/<name>/team?invitation=``, also of a task"""
    challenge, card = await board_of(name)
    code = (await request.form).get("code", "").strip() or request.args.get("invitation", "")
    link = invitation and with_query(f"{origin()}/leaderboard/{name}/team", invitation=invitation.code)
    mine = await backend_as_user().team(name, code[:200] or None)
    cursor = request.args.get("cursor")
    sent = mine.team and await backend_as_user().team_submissions(name, limit=PAGE, cursor=cursor)
    return await render(
        "team.html",
        challenge=challenge,
        card=card,
        mine=mine,
        sent=sent,
        next=sent and sent.next_cursor and with_query(f"/leaderboard/{name}/team", cursor=sent.next_cursor),
        first=cursor and f"/leaderboard/{name}/team",
        code=code,
        invitation=invitation,
        link=link,
        refusal=refusal,
    )


async def change(name: str) -> Response:
    """``POST /leaderboard/<name>/team``: an ``action``, new, join, invite or remove, and what it needs"""
    form, server = await request.form, backend_as_user()
    try:
        match form.get("action"):
            case "new":
                await server.new_team(name, form.get("name", ""))
            case "invite":
                return await show(name, invitation=await server.invite_to_team(name))
            case "remove":
                await server.remove_from_team(name, form.get("account", ""))
            case _:
                await server.join(name, form.get("code", "").strip())
    except (*SHOWN_ON_FORMS, NotFound) as refusal:
        return refused(await show(name, refusal), refusal)
    return see_other(f"/leaderboard/{name}/team")


ROUTES: Final[list[Route]] = [("GET", "/<name>/team", show), ("POST", "/<name>/team", change)]
