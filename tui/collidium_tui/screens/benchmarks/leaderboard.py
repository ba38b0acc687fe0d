"""The leaderboard of one task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.benchmarks import actions
from collidium_tui.screens.overview import OpenedScreen
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Metric, Page, Place, Submission, TaskCard


@dataclass(frozen=True, slots=True)
class Board:
    """A task and a page of its leaderboard."""

    card: TaskCard
    page: Page[Place]


async def open_leaderboard(screen: ConsoleScreen[Any], task: str) -> None:
    """Show a task's leaderboard on top; raises NotFound for a task that is not listed."""
    card = await screen.session.call(lambda client: client.task(task))
    screen.app.push_screen(LeaderboardScreen(card))


class LeaderboardScreen(OpenedScreen[Board]):
    """Ranks with standard errors; self-reported metrics are marked."""

    label = "Benchmarks"
    about = "The leaderboard of one task; v verifies the self-reported metrics of a submission."
    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "verify", "Verify"),
        Binding("x", "close_phase", "Close phase"),
    ]

    def __init__(self, card: TaskCard) -> None:
        super().__init__()
        self.card = card

    def content(self) -> ComposeResult:
        yield Static(id="card")
        yield Table(columns(self.card), lambda place: place.submission_id, of="places")

    async def fetch(self, client: AsyncClient) -> Board:
        name = self.card.name
        page = await client.leaderboard(name, limit=PAGE, cursor=self.query_one(Table).cursor)
        return Board(await client.task(name), page)

    def show(self, data: Board) -> None:
        self.card = data.card
        self.query_one("#card", Static).update(plain(" · ".join(_about(data.card)), single_line=True))
        self.query_one(Table).show_page(data.page)

    def action_verify(self) -> None:
        table: Table[Place] = self.query_one(Table)
        if table.current is not None:
            self.act(partial(actions.verify, self, table.current.submission_id))

    def action_close_phase(self) -> None:
        actions.close_phase(self, self.card.name, self.card.phase)


def columns(card: TaskCard) -> list[Column[Place]]:
    """Rank and account, a column for each metric, and whether what was self-reported is verified."""
    found: list[Column[Place]] = [
        Column("rank", lambda place: place.rank, right=True),
        Column("account", lambda place: place.hub_username),
        *(_score(metric) for metric in card.metrics),
    ]
    if card.pareto is not None:
        found.append(Column("Pareto front", lambda place: "on it" if place.pareto else ""))
    if any(metric.self_reported for metric in card.metrics):
        found.append(Column("verified", lambda place: place.verified_at, _verified))
    return [
        *found,
        Column("earned", lambda place: place.credits_earned, right=True),
        Column("when", lambda place: place.submitted_at),
        Column("model", model),
        Column("submission", lambda place: place.submission_id),
    ]


def _score(metric: Metric) -> Column[Place]:
    title = f"{metric.name} (self-reported)" if metric.self_reported else metric.name
    return Column(
        title,
        lambda place: place.scores.get(metric.name),
        lambda place: Text(score(place, metric.name), justify="right", no_wrap=True),
        right=True,
    )


def score(place: Place, metric: str) -> str:
    """A score with its standard error, rounded to two digits of the error."""
    value, error = place.scores.get(metric), place.uncertainties.get(metric)
    if value is None:
        return "none"
    if not error:
        return f"{value:.6g}"
    places = min(9, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:.{places}f} ± {error:.{places}f}"


def model(linked: Place | Submission) -> str:
    """The model of a submission, and whether the account's claim to it is verified."""
    return f"{linked.model_repo} ({linked.model_claim})" if linked.model_repo else ""


def _verified(place: Place) -> Text:
    return Text("yes" if place.verified_at is not None else "NOT YET")


def _about(card: TaskCard) -> list[str]:
    phase = {"public": f"public phase: {card.public_percent}% of the events count", "final": "final phase"}
    return [
        f"{card.name}: {card.title}",
        "accepts submissions" if card.accepts_submissions else "accepts NO submissions",
        *([phase.get(card.phase, card.phase)] if card.phase else []),
        f"scorer {card.scorer_version}",
        f"truth {card.truth_version or 'none'}",
    ]
