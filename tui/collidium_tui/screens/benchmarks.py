"""Benchmarks: tasks, challenges with their dates, self-reported scores to verify."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from collidium_tui.screens.challenge import open_challenge
from collidium_tui.screens.challenge.actions import close_challenge, verify
from collidium_tui.screens.challenge.columns import scores
from collidium_tui.screens.lists import ListsScreen
from collidium_tui.widgets.table import PAGE, Column, Table

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Challenge, Page, Submission, TaskStatus


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
        challenges: list[Column[Challenge]] = [
            Column("challenge", lambda challenge: challenge.name, longest=24),
            Column("state", lambda challenge: challenge.state),
            Column("opens", lambda one: one.opens_at, lambda one: self._minute(one.opens_at)),
            Column("closes", lambda one: one.closes_at, lambda one: self._minute(one.closes_at)),
            Column("results", lambda one: one.results_at, lambda one: self._minute(one.results_at)),
            Column("counts", lambda challenge: challenge.phase or "all"),
            Column("task", lambda challenge: challenge.task),
        ]
        tables: list[Table[Any]] = [
            Table(_TASKS, lambda task: task.name, of="tasks", id="tasks", fixed=1),
            Table(challenges, lambda challenge: challenge.name, of="challenges", id="challenges", fixed=1),
        ]
        # An organiser reads the second alone.
        yield from tables if self.session.status.overview else tables[::-1]
        yield Table(_WAITING, lambda sent: sent.submission_id, of="to verify", id="waiting")

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[None, Page[Any]]:
        if table.id == "tasks":
            return None, await client.admin_tasks()
        if table.id == "challenges":
            return None, await client.challenges()
        return None, await client.admin_submissions(unverified=True, limit=PAGE, cursor=table.cursor)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        name = event.row.challenge if event.table.id == "waiting" else event.row.name
        self.act(partial(open_challenge, self, name))

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

    def _minute(self, at: datetime | None) -> Text:
        return Text(self.times.show(at)[:16])


_TASKS: list[Column[TaskStatus]] = [
    Column("task", lambda task: task.name),
    Column("listed", lambda task: task.listed),
    Column("accepts submissions", lambda task: "yes" if task.reason is None else f"NO: {task.reason}"),
    Column("phase", lambda task: task.phase or ""),
    Column("scorer", lambda task: task.scorer_version or ""),
    Column("truth", lambda task: task.truth_version or ""),
    Column("package", lambda task: task.distribution or ""),
]
_WAITING: list[Column[Submission]] = [
    Column("task", lambda sent: sent.task),
    Column("account", lambda sent: sent.hub_username),
    Column("when", lambda sent: sent.submitted_at),
    Column("scores", scores),
    Column("no rank because", lambda sent: sent.unranked or ""),
    Column("submission", lambda sent: sent.submission_id),
]
