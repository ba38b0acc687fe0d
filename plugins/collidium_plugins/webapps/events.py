"""``/events``: the event display."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium.client import DatasetEntry
from collidium.errors import CollidiumError
from collidium_plugins.webapps.context import Route, backend
from collidium_plugins.webapps.errors import error_text
from collidium_plugins.webapps.rendering import render, see_other, with_query

#: Datasets that can be chosen by name; others are shown by their URL.
_OFFERED: Final = 200


async def show() -> Response:
    """``GET /events?repo=&config=&event=``; without a config, the first event of the first dataset."""
    wanted = request.args.get("dataset", "")
    if wanted:  # from the form without scripts, which has one field for repository and config
        repo, _, config = wanted.rpartition("/")
        return see_other(with_query("/events", repo=repo, config=config, event=request.args.get("event")))
    offered, problem = await _datasets()
    repo, config = request.args.get("repo", ""), request.args.get("config", "")
    if not config and offered:
        repo, config = offered[0].repo, offered[0].config
    return await render(
        "events.html",
        offered=offered,
        problem=problem,
        repo=repo,
        config=config,
        chosen=next((each for each in offered if (each.repo, each.config) == (repo, config)), None),
        event=_number(request.args.get("event", "")),
    )


async def _datasets() -> tuple[list[DatasetEntry], str]:
    """The datasets to choose from, and a warning about the list, if any."""
    try:
        page = await backend().datasets(limit=_OFFERED)
        return list(page.items), page.warning
    except CollidiumError as error:
        return [], error_text(error)


def _number(text: str) -> int | None:
    """Parse an event id; None if it is invalid."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


ROUTES: Final[list[Route]] = [("GET", "", show)]
