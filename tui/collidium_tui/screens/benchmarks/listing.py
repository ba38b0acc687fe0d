"""Benchmarks: the tasks installed and listed, and submissions to be verified."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from collidium_tui.screens.benchmarks import actions
from collidium_tui.screens.benchmarks.leaderboard import open_leaderboard
from collidium_tui.screens.lists import ListsScreen
from collidium_tui.widgets.table import PAGE, Column, Table

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Page, Submission, TaskStatus


class BenchmarksScreen(ListsScreen[None]):
    """Tasks, Enter opens the leaderboard of one; and what is to be verified, whatever the task."""

    label = "Benchmarks"
    about = "Tasks, why one accepts no submissions, leaderboards, self-reported scores to verify, phases."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "verify", "Verify"),
        Binding("x", "close_phase", "Close phase"),
    ]

    def content(self) -> ComposeResult:
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        yield Table(_TASKS, lambda task: task.name, of="tasks", id="tasks")
        yield Table(_WAITING, lambda sent: sent.submission_id, of="to verify", id="waiting")

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[None, Page[Any]]:
        if table.id == "tasks":
            return None, await client.admin_tasks()
        return None, await client.admin_submissions(unverified=True, limit=PAGE, cursor=table.cursor)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        task = event.row.name if event.table.id == "tasks" else event.row.task
        self.act(partial(open_leaderboard, self, task))

    def action_verify(self) -> None:
        if self.active_table.id == "waiting" and self.active_table.current is not None:
            self.act(partial(actions.verify, self, self.active_table.current.submission_id))
        else:
            self.notify("Choose a submission on the list To verify (l), or on a leaderboard (Enter).")

    def action_close_phase(self) -> None:
        if self.active_table.id == "tasks" and self.active_table.current is not None:
            actions.close_phase(self, self.active_table.current.name, self.active_table.current.phase)
        else:
            self.notify("Choose a task on the list Tasks (l) first.")


def _scores(sent: Submission) -> str:
    return ", ".join(
        f"{name} {'none' if value is None else f'{value:.4g}'}" for name, value in sent.scores.items()
    )


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
    Column("scores", _scores),
    Column("submission", lambda sent: sent.submission_id),
]
