"""The event display: which datasets there are, and the page whose scripts draw one event."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium.client import DatasetEntry
from collidium.errors import CollidiumError
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.errors import in_words
from collidium_plugins.webapps.rendering import render, see_other, with_query

#: Datasets that the page offers by name; others are shown by their address.
_OFFERED: Final = 200


async def show() -> Response:
    """``GET /events?repo=&config=&event=``; without a config, the first event of the first dataset."""
    wanted = request.args.get("dataset", "")
    if wanted:  # the form, sent without scripts: its one field names two things
        repo, config = _parts(wanted)
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
        chosen=next((one for one in offered if (one.repo, one.config) == (repo, config)), None),
        event=_number(request.args.get("event", "")),
    )


async def _datasets() -> tuple[list[DatasetEntry], str]:
    """The datasets to offer, and what is wrong with the list, if anything."""
    try:
        page = await context.backend().datasets(limit=_OFFERED)
        return list(page.items), page.warning
    except CollidiumError as error:
        return [], in_words(error)


def _parts(dataset: str) -> tuple[str, str]:
    repo, _, config = dataset.rpartition("/")
    return repo, config


def _number(text: str) -> int | None:
    """An event's id as it was typed; None where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


ROUTES: Final[list[Route]] = [("GET", "", show)]
