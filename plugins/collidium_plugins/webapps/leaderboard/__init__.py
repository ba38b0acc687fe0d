"""``/leaderboard/<name>``: the ranking of a task or challenge with plots, and its printable results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from jinja2.environment import TemplateModule
from markupsafe import Markup
from msgspec import structs
from quart import Response, request
from werkzeug.datastructures import MultiDict

from collidium.client import Challenge, Metric, Place, Result, Submission, TaskCard
from collidium.client.calls.call import segment
from collidium.errors import CollidiumError
from collidium.hub.cards import rendered
from collidium.presentation.challenges import quota_text
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route, backend
from collidium_plugins.webapps.kept_pages import Source, kept, kept_page
from collidium_plugins.webapps.leaderboard import drawings
from collidium_plugins.webapps.leaderboard.drawings import Drawing
from collidium_plugins.webapps.rendering import render, render_parts, see_other, with_query

#: Places per page.
ROWS: Final = 50
#: Places on the printable page; files have all.
PRINTED: Final = 1000
#: Listed self-reported submissions, which have no rank.
APART: Final = 20
#: Steps in the plot of a history, and places in a plot of two metrics.
STEPS: Final = 50
PLACES: Final = 150
#: Maximum number of places of one account that are read per challenge.
PLACES_OF_ONE: Final = 1000
#: Leaderboards of shorter challenges show the time of submissions, not only the date.
SHORT: Final = timedelta(days=3)
#: How long the end of a plot over time stays.
MOMENT: Final = timedelta(minutes=10)
#: Maximum number of columns for metrics; pages of submissions have all.
COLUMNS: Final = 5


@dataclass(frozen=True, slots=True)
class Picked:
    """Filters of the places, and the start of the page; an empty text matches all."""

    user: str = ""
    model: str = ""
    pareto: bool = False
    cursor: str = ""

    @classmethod
    def of(cls, query: MultiDict[str, str]) -> Picked:
        """Parse the query."""
        user, model, cursor = (query.get(name, "").strip() for name in ("user", "model", "cursor"))
        return cls(user, model, query.get("pareto") == "1", cursor)

    @property
    def is_part(self) -> bool:
        """Whether a filter is set."""
        return bool(self.user or self.model or self.pareto)

    @property
    def query(self) -> Mapping[str, str | int | bool]:
        """The query of the backend's call."""
        given = {"cursor": self.cursor, "hub_username": self.user, "model_repo": self.model}
        query: dict[str, str | int | bool] = {name: value for name, value in given.items() if value}
        return query | {"limit": ROWS} | ({"pareto": True} if self.pareto else {})

    def address(self, task: str, cursor: str = "") -> str:
        """The URL of these places, from ``cursor`` on."""
        pareto = "1" if self.pareto else None
        return with_query(
            f"/leaderboard/{task}", user=self.user, model=self.model, pareto=pareto, cursor=cursor
        )


def address_of_place(submission: Submission, rank: int) -> str:
    """The URL of a submission's place: on the first page, or among those of its account."""
    user = None if rank <= ROWS else submission.hub_username
    return with_query(f"/leaderboard/{submission.challenge}", user=user) + f"#s-{submission.submission_id}"


async def places_of(hub_username: str, names: Iterable[str]) -> list[tuple[str, Place]]:
    """Return the places of an account and its teams on these leaderboards, each with its challenge."""
    boards = {name: backend().leaderboard(name, user=hub_username, limit=PLACES_OF_ONE) for name in names}
    found = await asyncio.gather(*boards.values())
    return [(name, place) for name, board in zip(boards, found, strict=True) for place in board]


async def rank_of(submission: Submission) -> int | None:
    """Return the rank of a submission; None for baselines, and unless it is its participant's best."""
    places = await places_of(submission.hub_username, [submission.challenge])
    same = (place for _, place in places if place.submission_id == submission.submission_id)
    return next((place.rank for place in same if not place.baseline), None)


def _is_short(challenge: Challenge, places: Iterable[Place]) -> bool:
    """Whether the challenge is shorter than :data:`SHORT`, from its start or its first submission."""
    begin = challenge.opens_at or min((place.submitted_at for place in places), default=None)
    return bool(begin and challenge.closes_at and challenge.closes_at - begin < SHORT)


def columns_of(card: TaskCard, places: Iterable[Place]) -> Sequence[Metric]:
    """The primary metric, and those that these places have."""
    had = {card.primary_metric, *(name for place in places for name in place.scores)}
    return [metric for metric in card.metrics if metric.name in had]


def current(challenges: Iterable[Challenge]) -> Sequence[Challenge]:
    """Open and upcoming challenges, without the permanent ones of tasks."""
    return [each for each in challenges if each.state in {"open", "upcoming"} and each.name != each.task]


async def first() -> Response:
    """``GET /leaderboard``: redirects to the open challenge that closes first, else to a task"""
    cards = (await backend().tasks()).items
    for challenge in current(await backend().challenges()):
        if challenge.state == "open":
            return see_other(f"/leaderboard/{challenge.name}")
    if not cards:
        return await render("no-leaderboards.html")
    card = next((card for card in cards if card.accepts_submissions), cards[0])
    return see_other(f"/leaderboard/{card.name}")


async def board_of(name: str) -> tuple[Challenge, TaskCard]:
    """Return a challenge, and the card of its task with the challenge's name; raises NotFound."""
    challenge = await backend().challenge(name)
    card = challenge.card
    assert card is not None  # noqa: S101 -- for the type checker
    if challenge.name == challenge.task:
        return challenge, card
    return challenge, structs.replace(card, name=challenge.name, title=challenge.title)


async def viewers_quota(card: TaskCard) -> str:
    """The viewer's remaining quota as text; empty if there is none or it is unknown."""
    if context.viewer() is None or not card.accepts_submissions:
        return ""
    try:
        return quota_text(await context.backend_as_user().quota(card.name))
    except CollidiumError:
        return ""


async def _own(card: TaskCard) -> Mapping[str, bool]:
    """The best submissions of the viewer and of their team, and whether each is chosen."""
    viewer = context.viewer()
    if viewer is None:
        return {}
    places = await places_of(viewer.hub_username, [card.name])
    found = await asyncio.gather(*(backend().submission(place.submission_id) for _, place in places))
    return {one.submission_id: one.chosen_at is not None for one in found}


async def show(name: str) -> Response:
    """``GET /leaderboard/<name>`` of a task or challenge"""
    picked = Picked.of(request.args)
    board = f"/v1/leaderboard/{segment(name)}"
    sources: list[Source] = [
        (f"/v1/challenges/{segment(name)}", {}),
        ("/v1/challenges", {}),
        (board, picked.query),
        (f"{board}/self-reported", {"limit": APART}),
    ]
    parts = partial(kept, "parts", name, sources, partial(_parts, name, picked), _moment())
    return await kept_page(name, sources, partial(_show, picked, parts), _moment())


@dataclass(frozen=True, slots=True)
class _Parts:
    """What all users see of a page: values of its template, rendered parts, and the rows of the places."""

    values: Mapping[str, Any]
    module: TemplateModule
    rows: Sequence[tuple[Place, Markup]]
    size: int


async def _show(picked: Picked, parts: Callable[[], Awaitable[_Parts]]) -> Response:
    shared = await parts()
    card: TaskCard = shared.values["card"]
    return await render(
        "leaderboard.html",
        **shared.values,
        parts=shared.module,
        rows=shared.rows,
        picked=picked,
        quota=await viewers_quota(card),
        own=await _own(card) if shared.rows else {},
    )


async def _parts(name: str, picked: Picked) -> _Parts:
    values = await _values(name, picked)
    module = await render_parts("leaderboard-parts.html", **values, picked=picked)
    row = module.row  # type: ignore[attr-defined]  # a macro of the template
    rows = [(place, await row(place)) for place in values["places"]]
    texts = [value for value in vars(module).values() if isinstance(value, str)]
    # The values from which they were made take about as much.
    size = 2 * sum(map(len, (*texts, *(text for _, text in rows))))
    return _Parts(values, module, rows, size)


async def _values(name: str, picked: Picked) -> dict[str, Any]:
    challenge, card = await board_of(name)
    listed = (await backend().challenges()).items
    challenges = [one for one in listed if one.truth_version or one.name == name]
    rules, *announced = await asyncio.gather(
        *(rendered(text, "") for text in (challenge.rules, *(one.text for one in challenge.announcements)))
    )
    places = await backend().leaderboard(
        card.name,
        limit=ROWS,
        cursor=picked.cursor or None,
        pareto=picked.pareto,
        user=picked.user or None,
        model_repo=picked.model or None,
    )
    columns = columns_of(card, places)
    is_start = not picked.is_part and not picked.cursor
    apart = await backend().self_reported(card.name, limit=APART) if is_start and card.ranks_measured else ()
    return {
        "apart": list(apart),
        "challenge": challenge,
        "challenges": challenges,
        "rules": rules,
        "announcements": list(zip(challenge.announcements, announced, strict=True)),
        "card": card,
        "places": places.items,
        "columns": columns[:COLUMNS],
        "more_columns": len(columns[COLUMNS:]),
        "short": _is_short(challenge, places),
        "next": places.next_cursor and picked.address(card.name, places.next_cursor),
        "first": picked.cursor and picked.address(card.name),
        "drawings": await _drawings(card) if is_start and places.items else [],
    }


async def results(name: str) -> Response:
    """``GET /leaderboard/<name>/results``: a printable page of the places"""
    challenge, board = f"/v1/challenges/{segment(name)}", f"/v1/leaderboard/{segment(name)}"
    sources: list[Source] = [
        (challenge, {}),
        (board, {"limit": PRINTED}),
        (f"{challenge}/results", {"status": "disqualified"}),
        # Of more teams than these only the first ones are seen to change.
        (f"{challenge}/teams", {"limit": PRINTED}),
    ]
    return await kept_page(name, sources, partial(_results, name))


async def _results(name: str) -> Response:
    challenge, card = await board_of(name)
    places = await backend().leaderboard(name, limit=PRINTED)
    disqualified = await backend().results(name, status="disqualified")
    return await render(
        "results.html",
        challenge=challenge,
        card=card,
        rules=await rendered(challenge.rules, ""),
        places=places.items,
        participants=sum(not place.baseline for place in places.items),
        members=await _members(challenge) if any(place.team for place in places.items) else {},
        more=places.next_cursor is not None,
        disqualified=msgspec.json.decode(disqualified, type=list[Result]),
        columns=columns_of(card, places)[:COLUMNS],
        short=_is_short(challenge, places),
    )


async def _members(challenge: Challenge) -> dict[str, Sequence[str]]:
    """The members of each team."""
    found: dict[str, Sequence[str]] = {}
    cursor = None
    while True:
        page = await backend().teams(challenge.name, limit=PRINTED, cursor=cursor)
        found |= {team.name: team.members for team in page.items}
        if (cursor := page.next_cursor) is None:
            return found


def _moment() -> datetime:
    """Now, to ten minutes: until then a page whose leaderboard did not change is the same to a byte."""
    seconds = MOMENT.total_seconds()
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() // seconds * seconds, UTC)


async def _drawings(card: TaskCard) -> Sequence[Drawing]:
    """Plots of the whole leaderboard."""
    server, now = backend(), _moment()
    histories = await asyncio.gather(
        *(server.leaderboard_history(card.name, metric.name, limit=STEPS) for metric in card.metrics)
    )
    found = [
        drawings.history(metric, steps.items, now)
        for metric, steps in zip(card.metrics, histories, strict=True)
        if steps.items
    ]
    best = await server.leaderboard(card.name, limit=PLACES)
    found = drawings.of_models(card, best.items) + found
    if card.pareto is None:
        return found
    front = await server.leaderboard(card.name, limit=PLACES, pareto=True)
    return [drawings.front(card, front.items, best.items), *found]


ROUTES: Final[list[Route]] = [
    ("GET", "", first),
    ("GET", "/<name>", show),
    ("GET", "/<name>/results", results),
]
