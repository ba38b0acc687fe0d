"""The viewer's teams, with invitations, and the viewer's notifications."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium.client import Invitation
from collidium.errors import CollidiumError, NotFound
from collidium_plugins.webapps.context import Route, backend_as_user, origin
from collidium_plugins.webapps.leaderboard import board_of
from collidium_plugins.webapps.rendering import (
    SHOWN_ON_FORMS,
    refused,
    render,
    retry_after,
    see_other,
    with_query,
)
from collidium_plugins.webapps.sign_in import forms

#: Submissions of a team per page.
PAGE: Final = 20
#: Labels of the kinds of notifications.
WORDS: Final = {
    "scored": "My submission was scored",
    "disqualified": "My submission was disqualified",
    "deadline": "A challenge that I submitted to closes tomorrow",
    "closed": "It has closed",
    "results": "Its final results are in force",
    "job": "My simulation request has ended",
}


async def show(
    name: str, refusal: CollidiumError | None = None, invitation: Invitation | None = None
) -> Response:
    """``GET /leaderboard/<name>/team?invitation=``, with the fields of a form that was sent"""
    challenge, card = await board_of(name)
    typed = await forms.typed()
    code = typed.get("code", "").strip() or request.args.get("invitation", "")
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
        new_name=typed.get("name", ""),
        invitation=invitation,
        link=link,
        refusal=refusal,
    )


async def change(name: str) -> Response:
    """``POST /leaderboard/<name>/team``: an ``action`` (new, join, invite or remove) with its fields"""
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


async def show_notifications(refusal: CollidiumError | None = None) -> Response:
    """``GET /leaderboard/notifications``, with the fields of a form that was sent"""
    known, typed = await backend_as_user().notifications(), await forms.typed()
    ticked = typed.getlist("kind")
    return await render(
        "notifications.html",
        known=known,
        email=typed.get("email", known.email or "").strip(),
        kinds={kind: kind in ticked for kind in known.kinds} if "email" in typed else known.kinds,
        words=WORDS,
        refusal=refusal,
        retry_after=retry_after(refusal),
    )


async def change_notifications() -> Response:
    """``POST /leaderboard/notifications``: the address, which may be empty, and the enabled kinds"""
    form = await request.form
    email, ticked = form.get("email", "").strip(), form.getlist("kind")
    known = await backend_as_user().notifications()
    kinds = {kind: kind in ticked for kind in known.kinds}
    try:
        await backend_as_user().set_notifications(email=email or None, kinds=kinds)
    except SHOWN_ON_FORMS as refusal:
        return refused(await show_notifications(refusal), refusal)
    return see_other("/leaderboard/notifications")


ROUTES: Final[list[Route]] = [
    ("GET", "/notifications", show_notifications),
    ("POST", "/notifications", change_notifications),
    ("GET", "/<name>/team", show),
    ("POST", "/<name>/team", change),
]
