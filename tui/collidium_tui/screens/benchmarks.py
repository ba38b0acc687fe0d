"""Benchmarks: tasks, leaderboards, self-reported scores to verify, challenges to close."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import structs
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from collidium.client.quantities import written
from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.lists import ListsScreen
from collidium_tui.screens.overview import OpenedScreen
from collidium_tui.widgets.form import Question
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Challenge, Metric, Page, Place, Submission, TaskCard, TaskStatus


async def verify(screen: ConsoleScreen[Any], submission_id: str) -> None:
    """Verify the self-reported scores of a submission, after showing them and what they earn."""
    sent = await screen.session.call(lambda client: client.submission(submission_id))
    card = await screen.session.call(lambda client: client.task(sent.task))
    reported = self_reported_scores(sent, card)
    if sent.verified_at is not None or not reported:
        why = "it is verified already" if reported else f"{sent.task} has no self-reported metric"
        screen.notify(f"{submission_id}: {why}", title="Nothing to verify", markup=False)
        return
    consequence = (
        f"To {sent.task}, sent {screen.times.show(sent.submitted_at)}. It reports:\n"
        + "\n".join(f"  {line}" for line in reported)
        + "\nIt counts as verified from now on, on the leaderboard and for credits. This cannot be undone."
    )
    question = Question(f"Verify {submission_id} of {sent.hub_username}", consequence, "Verify")
    if await screen.confirm(question):
        verified = await screen.perform(
            lambda client, key: client.admin_verify(submission_id, idempotency_key=key)
        )
        if verified is not None:
            earned = verified.credits_earned - sent.credits_earned
            screen.notify(f"Verified: {sent.hub_username} earned {earned:,} credits", markup=False)


def self_reported_scores(sent: Submission, card: TaskCard) -> list[str]:
    """The self-reported scores of a submission, and what each may earn."""
    lines = []
    for metric in card.metrics:
        if metric.self_reported:
            pays = f"pays {metric.reward:,} credits if it is the best" if metric.reward else "pays nothing"
            lines.append(f"{metric.name}: {score(sent, metric.name)}; {pays}")
    return lines


async def close_challenge(screen: ConsoleScreen[Any], name: str) -> None:
    """Close a challenge, when its consequence was confirmed."""
    consequence = (
        "No more submissions are taken. Where events are withheld, they count from now on: the leaderboard "
        "ranks by them, credits are paid for the best scores on them, and it cannot be opened again."
    )
    if await screen.confirm(Question(f"Close {name}", consequence, "Close")):
        closed = await screen.perform(
            lambda client, key: client.admin_close_challenge(name, idempotency_key=key)
        )
        if closed is not None:
            results = "final results are shown" if closed.results_at else "final results come within minutes"
            screen.notify(f"{name} is closed, {results}", markup=False)


@dataclass(frozen=True, slots=True)
class Board:
    """A task and a page of its leaderboard."""

    card: TaskCard
    page: Page[Place]


async def open_leaderboard(screen: ConsoleScreen[Any], name: str) -> None:
    """Show the leaderboard of a challenge on top; raises NotFound for one that is not listed."""
    card = await screen.session.call(lambda client: client.task(name))
    screen.app.push_screen(LeaderboardScreen(structs.replace(card, name=name)))


class LeaderboardScreen(OpenedScreen[Board]):
    """Ranks with standard errors; self-reported metrics are marked."""

    label = "Benchmarks"
    about = "The leaderboard of one task; v verifies the self-reported metrics of a submission."
    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "verify", "Verify"),
        Binding("x", "close_challenge", "Close"),
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
            self.act(partial(verify, self, table.current.submission_id))

    def action_close_challenge(self) -> None:
        self.act(partial(close_challenge, self, self.card.name))


def columns(card: TaskCard) -> list[Column[Place]]:
    """Rank and account, a column for each metric, and whether what was self-reported is verified."""
    found: list[Column[Place]] = [
        Column("rank", lambda place: place.rank, right=True),
        Column("account", lambda place: f"{place.hub_username}{' (baseline)' * place.baseline}"),
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


def score(place: Place | Submission, metric: str) -> str:
    """A score with its standard error, as the pages write it."""
    value = place.scores.get(metric)
    return "none" if value is None else written(value, place.uncertainties.get(metric))


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


class BenchmarksScreen(ListsScreen[None]):
    """Tasks, Enter opens the leaderboard of one; and what is to be verified, whatever the task."""

    label = "Benchmarks"
    about = "Tasks, why one accepts no submissions, leaderboards, self-reported scores to verify, closing."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "verify", "Verify"),
        Binding("x", "close_challenge", "Close"),
    ]

    def content(self) -> ComposeResult:
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        yield Table(_TASKS, lambda task: task.name, of="tasks", id="tasks")
        yield Table(_CHALLENGES, lambda challenge: challenge.name, of="challenges", id="challenges")
        yield Table(_WAITING, lambda sent: sent.submission_id, of="to verify", id="waiting")

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[None, Page[Any]]:
        if table.id == "tasks":
            return None, await client.admin_tasks()
        if table.id == "challenges":
            return None, await client.challenges()
        return None, await client.admin_submissions(unverified=True, limit=PAGE, cursor=table.cursor)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        name = event.row.challenge if event.table.id == "waiting" else event.row.name
        self.act(partial(open_leaderboard, self, name))

    def action_verify(self) -> None:
        if self.active_table.id == "waiting" and self.active_table.current is not None:
            self.act(partial(verify, self, self.active_table.current.submission_id))
        else:
            self.notify("Choose a submission on the list To verify (l), or on a leaderboard (Enter).")

    def action_close_challenge(self) -> None:
        if self.active_table.id != "waiting" and self.active_table.current is not None:
            self.act(partial(close_challenge, self, self.active_table.current.name))
        else:
            self.notify("Choose one on the list Challenges (l) first.")


def _scores(sent: Submission) -> str:
    return ", ".join(f"{name} {score(sent, name)}" for name in sent.scores)


_TASKS: list[Column[TaskStatus]] = [
    Column("task", lambda task: task.name),
    Column("listed", lambda task: task.listed),
    Column("accepts submissions", lambda task: "yes" if task.reason is None else f"NO: {task.reason}"),
    Column("phase", lambda task: task.phase or ""),
    Column("scorer", lambda task: task.scorer_version or ""),
    Column("truth", lambda task: task.truth_version or ""),
    Column("package", lambda task: task.distribution or ""),
]


_CHALLENGES: list[Column[Challenge]] = [
    Column("challenge", lambda challenge: challenge.name),
    Column("state", lambda challenge: challenge.state),
    Column("opens", lambda challenge: challenge.opens_at or ""),
    Column("closes", lambda challenge: challenge.closes_at or ""),
    Column("results", lambda challenge: challenge.results_at or ""),
    Column("counts", lambda challenge: challenge.phase or "all"),
    Column("task", lambda challenge: challenge.task),
]
_WAITING: list[Column[Submission]] = [
    Column("task", lambda sent: sent.task),
    Column("account", lambda sent: sent.hub_username),
    Column("when", lambda sent: sent.submitted_at),
    Column("scores", _scores),
    Column("no rank because", lambda sent: sent.unranked or ""),
    Column("submission", lambda sent: sent.submission_id),
]
