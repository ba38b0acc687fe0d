"""``/models``: models on the hub, and their places on leaderboards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from quart import Response, request

from collidium.client import AsyncClient, Place, RepoCard, TaskCard
from collidium.errors import CollidiumError, NotFound
from collidium.hub import cards
from collidium_plugins.webapps.context import Route, backend, web
from collidium_plugins.webapps.rendering import render, with_query

#: Models per page, and places of one model on each leaderboard.
PAGE: Final = 24
PLACES: Final = 20

_FILTERS: Final = ("search", "tag", "task")


async def show() -> Response:
    """``GET /models``"""
    wanted = {name: request.args.get(name, "").strip() for name in _FILTERS}
    cursor = request.args.get("cursor") or None
    server = backend()
    tasks, page = await asyncio.gather(
        server.tasks(),
        server.models(
            search=wanted["search"], tag=wanted["tag"], task=wanted["task"], limit=PAGE, cursor=cursor
        ),
    )
    return await render(
        "models.html",
        tasks=tasks.items,
        models=page.items,
        wanted=wanted,
        filtered=any(wanted.values()),
        first=cursor and with_query("/models", **wanted),
        next=page.next_cursor and with_query("/models", **wanted, cursor=page.next_cursor),
    )


async def show_one(namespace: str, name: str) -> Response:
    """``GET /models/<namespace>/<name>``, also for unlisted models on a leaderboard"""
    repo, server = f"{namespace}/{name}", backend()
    found, tasks = await asyncio.gather(server.models(search=repo), server.tasks())
    model = next((model for model in found if model.model_repo == repo), None)
    standings = await asyncio.gather(*(_standing(server, task, repo) for task in tasks))
    places = [(task, place) for task, its_places, _ in standings for place in its_places]
    ranked = {place.submission_id for _, _, best in standings for place in best}
    if model is None and not places:
        raise NotFound(f"no model {repo!r} is listed, and no leaderboard names it")
    card = await _card(repo) if model else None
    text = await cards.rendered(card.text, card.url) if card else ""
    return await render(
        "model.html", repo=repo, model=model, places=places, ranked=ranked, card=card, text=text
    )


async def _card(repo: str) -> RepoCard | None:
    try:
        return await backend().card("models", repo)
    except CollidiumError:  # the page is shown without a card
        return None


async def show_how_to_list() -> Response:
    """``GET /models/list-yours``"""
    tasks = await backend().tasks()
    return await render("how-to-get-listed.html", tasks=tasks.items, platform_tag=web().settings.tag)


async def _standing(
    server: AsyncClient, task: TaskCard, repo: str
) -> tuple[TaskCard, Sequence[Place], Sequence[Place]]:
    """The best submission of each participant that names a model, and those of them that have a rank."""
    best, every = await asyncio.gather(
        server.leaderboard(task.name, model_repo=repo, limit=PLACES),
        server.leaderboard(task.name, model_repo=repo, every=True, limit=PLACES),
    )
    found: dict[str, Place] = {}
    for place in [*best.items, *every.items]:
        found.setdefault(place.team or place.hub_username, place)
    return task, [*found.values()], best.items


ROUTES: Final[list[Route]] = [
    ("GET", "", show),
    ("GET", "/list-yours", show_how_to_list),
    ("GET", "/<namespace>/<name>", show_one),
]
