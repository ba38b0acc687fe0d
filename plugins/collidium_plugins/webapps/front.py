"""The front page, with an overview of the platform in live numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from cachetools import TTLCache
from quart import Response, current_app

from collidium.client import AsyncClient, Challenge, DatasetEntry, HubModel, Page, Place, TaskCard
from collidium.errors import CollidiumError, Unavailable
from collidium.runtime.shared_calls import SharedCalls
from collidium_plugins.webapps.context import Route, backend, origin, web
from collidium_plugins.webapps.errors import error_text
from collidium_plugins.webapps.leaderboard import current
from collidium_plugins.webapps.rendering import render

Result = TypeVar("Result")

#: How long the numbers are cached.
KEPT_SECONDS: Final = 5.0
#: Maximum numbers of datasets and models that are counted, of tasks, and of places of each.
COUNTED: Final = 100
TASKS: Final = 20
PLACES: Final = 3
#: Timeout of each part; the client's own does not apply in the same process.
PART_SECONDS: Final = 5.0

_EXTENSION: Final = "collidium.webapps.front"


@dataclass(frozen=True, slots=True)
class Board:
    """A task and its leading submissions."""

    task: TaskCard
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class FrontOverview:
    """Responses of the backend; None for failed ones."""

    tasks: Sequence[TaskCard] | None
    #: Open and upcoming ones, the next to close first.
    challenges: Sequence[Challenge]
    boards: Sequence[Board]
    datasets: Page[DatasetEntry] | None
    models: Page[HubModel] | None
    #: Messages about missing parts.
    missing: Sequence[str]

    @property
    def events(self) -> int | None:
        """Total events of the datasets whose number is known."""
        if self.datasets is None:
            return None
        return sum(entry.events or 0 for entry in self.datasets)


async def show() -> Response:
    """``GET /``"""
    calls: SharedCalls[None, FrontOverview] = current_app.extensions.setdefault(
        _EXTENSION, SharedCalls(TTLCache(1, KEPT_SECONDS))
    )
    overview = await calls.run(None, _ask)
    return await render("front.html", overview=overview, backend_url=web().api_base or origin())


async def _ask() -> FrontOverview:
    server = backend()
    tasks, challenges, datasets, models = await asyncio.gather(
        _or_error(server.tasks()),
        _or_error(server.challenges()),
        _or_error(server.datasets(limit=COUNTED)),
        _or_error(server.models(limit=COUNTED)),
    )
    listed = () if isinstance(tasks, CollidiumError) else tasks.items[:TASKS]
    boards = await asyncio.gather(*(_or_error(_board(server, task)) for task in listed))
    reasons = [
        error_text(part)
        for part in (tasks, challenges, datasets, models, *boards)
        if isinstance(part, CollidiumError)
    ]
    if isinstance(datasets, Page) and datasets.warning:
        reasons.append(datasets.warning)
    return FrontOverview(
        tasks=None if isinstance(tasks, CollidiumError) else tasks.items,
        challenges=() if isinstance(challenges, CollidiumError) else current(challenges),
        boards=sorted(
            (board for board in boards if isinstance(board, Board)),
            key=lambda board: (not board.places, not board.task.accepts_submissions),
        ),
        datasets=None if isinstance(datasets, CollidiumError) else datasets,
        models=None if isinstance(models, CollidiumError) else models,
        missing=list(dict.fromkeys(reasons)),
    )


async def _board(server: AsyncClient, task: TaskCard) -> Board:
    return Board(task, (await server.leaderboard(task.name, limit=PLACES)).items)


async def _or_error(answer: Awaitable[Result]) -> Result | CollidiumError:
    """Return the result or the error, so that the rest of the page is shown."""
    try:
        async with asyncio.timeout(PART_SECONDS):
            return await answer
    except TimeoutError:
        return Unavailable("some numbers take longer than usual; try again in a moment")
    except CollidiumError as error:
        return error


ROUTES: Final[list[Route]] = [("GET", "/", show)]
