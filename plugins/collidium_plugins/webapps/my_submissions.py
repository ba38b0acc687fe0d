"""``/leaderboard/mine``: what the account has submitted, and where that stands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from quart import Response, request

from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.rendering import render, with_query

#: Submissions on a page.
PAGE: Final = 25
#: Places of an account that are looked at in each task, its best ones.
PLACES: Final = 1000


async def show() -> Response:
    """``GET /leaderboard/mine?task=&cursor=``"""
    session = context.signed_in()
    task, cursor = request.args.get("task") or None, request.args.get("cursor") or None
    page, cards = await asyncio.gather(
        context.backend_as_user().submissions(task=task, limit=PAGE, cursor=cursor),
        context.backend().tasks(),
    )
    listed = {card.name: card for card in cards}
    here = {submission.task for submission in page} & set(listed)
    return await render(
        "my-submissions.html",
        submissions=page,
        cards=listed,
        ranks=await ranks_of(session.hub_username, here),
        task=task,
        first=cursor and with_query("/leaderboard/mine", task=task),
        next=page.next_cursor and with_query("/leaderboard/mine", task=task, cursor=page.next_cursor),
    )


async def ranks_of(hub_username: str, tasks: Iterable[str]) -> Mapping[str, int]:
    """The ranks of an account's submissions to these tasks, by their ids; older truths have none."""
    server = context.backend()
    boards = await asyncio.gather(
        *(server.leaderboard(task, user=hub_username, limit=PLACES) for task in tasks)
    )
    return {place.submission_id: place.rank for board in boards for place in board}


ROUTES: Final[list[Route]] = [("GET", "/mine", show)]
