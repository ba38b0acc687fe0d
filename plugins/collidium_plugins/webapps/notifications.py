"""``/leaderboard/notifications``: what the viewer is notified of, and at which address."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium.errors import CollidiumError
from collidium_plugins.webapps.context import Route, backend_as_user
from collidium_plugins.webapps.rendering import SHOWN_ON_FORMS, refused, render, retry_after, see_other

#: The kinds of events in words.
WORDS: Final = {
    "scored": "My submission was scored",
    "disqualified": "My submission was disqualified",
    "deadline": "A challenge that I submitted to closes tomorrow",
    "closed": "It has closed",
    "results": "Its final results are in force",
    "job": "My simulation request has ended",
}


async def show(email: str | None = None, refusal: CollidiumError | None = None) -> Response:
    """``GET /leaderboard/notifications``; with the address as typed, if it was refused."""
    known = await backend_as_user().notifications()
    return await render(
        "notifications.html",
        known=known,
        email=known.email or "" if email is None else email,
        words=WORDS,
        refusal=refusal,
        retry_after=retry_after(refusal),
    )


async def change() -> Response:
    """``POST /leaderboard/notifications``: the address, none if it is empty, and the kinds that are on."""
    form = await request.form
    email, ticked = form.get("email", "").strip(), form.getlist("kind")
    known = await backend_as_user().notifications()
    kinds = {kind: kind in ticked for kind in known.kinds}
    try:
        await backend_as_user().set_notifications(email=email or None, kinds=kinds)
    except SHOWN_ON_FORMS as refusal:
        return refused(await show(email, refusal), refusal)
    return see_other("/leaderboard/notifications")


ROUTES: Final[list[Route]] = [("GET", "/notifications", show), ("POST", "/notifications", change)]
