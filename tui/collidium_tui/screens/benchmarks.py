"""Benchmarks: tasks, challenges, scores to verify, and submitted models."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from collidium.presentation import challenges, consequences, evaluations, submissions
from collidium.presentation.evaluations import short_state
from collidium_tui.screen import ConsoleScreen, ListsScreen
from collidium_tui.screens.challenge import open_challenge
from collidium_tui.screens.challenge.actions import close_challenge, verify
from collidium_tui.widgets.form import Question
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import duration

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Evaluation, Page, TaskCard, TaskStatus


class BenchmarksScreen(ListsScreen[None]):
    """Lists of tasks, challenges, submissions to verify and models. Enter opens the challenge of one."""

    label = "Benchmarks"
    about = "Tasks and why one accepts no submissions, challenges, scores to verify, and submitted models."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "verify", "Verify"),
        Binding("x", "close_challenge", "Close, or cancel a model"),
        Binding("a", "rerun", "Run a model again", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        #: The cards of the tasks with scores to verify.
        self.cards: dict[str, TaskCard] = {}

    def content(self) -> ComposeResult:
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        listed = challenges.in_console(self._minute)
        tables: list[Table[Any]] = [
            Table(_TASKS, lambda task: task.name, of="tasks", id="tasks", fixed=1),
            Table(listed, lambda challenge: challenge.name, of="challenges", id="challenges", fixed=1),
        ]
        # Organisers can only read the challenges.
        yield from tables if self.session.status.overview else tables[::-1]
        waiting = submissions.to_verify(self.cards)
        yield Table(waiting, lambda sent: sent.submission_id, of="to verify", id="waiting")
        models = evaluations.in_console(self._age)
        yield Table(models, lambda run: run.evaluation_id, of="models", id="models", fixed=1)

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[None, Page[Any]]:
        if table.id == "tasks":
            return None, await client.admin_tasks()
        if table.id == "challenges":
            return None, await client.challenges()
        if table.id == "models":
            return None, await client.admin_evaluations(limit=PAGE, cursor=table.cursor)
        self.cards.update({card.name: card for card in await client.tasks()})
        return None, await client.admin_submissions(unverified=True, limit=PAGE, cursor=table.cursor)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        name = event.row.challenge if event.table.id in {"waiting", "models"} else event.row.name
        self.act(partial(open_challenge, self, name))

    def action_verify(self) -> None:
        if self.active_table.id == "waiting" and self.active_table.current is not None:
            self.act(partial(verify, self, self.active_table.current.submission_id))
        else:
            self.notify("Choose a submission on the list To verify (l), or on a leaderboard (Enter).")

    def action_close_challenge(self) -> None:
        if self.active_table.id == "models":
            self._operate("cancel")
        elif self.active_table.id != "waiting" and self.active_table.current is not None:
            self.act(partial(close_challenge, self, self.active_table.current.name))
        else:
            self.notify("Choose one on the list Challenges (l) first.")

    def action_rerun(self) -> None:
        self._operate("rerun")

    def _operate(self, action: Literal["cancel", "rerun"]) -> None:
        if self.active_table.id == "models" and self.active_table.current is not None:
            self.act(partial(operate_model, self, self.active_table.current, action))
        else:
            self.notify("Choose one on the list Models (l) first.")

    def _age(self, at: datetime) -> str:
        return duration(self.times.now() - at)

    def _minute(self, at: datetime | None) -> str:
        return self.times.show(at)[:16]


_TASKS: list[Column[TaskStatus]] = [
    Column("task", lambda task: task.name),
    Column("listed", lambda task: task.listed),
    Column("accepts submissions", lambda task: "yes" if task.reason is None else f"NO: {task.reason}"),
    Column("phase", lambda task: task.phase or ""),
    Column("scorer", lambda task: task.scorer_version or ""),
    Column("truth", lambda task: task.truth_version or ""),
    Column("package", lambda task: task.distribution or ""),
]


async def operate_model(
    screen: ConsoleScreen[Any], run: Evaluation, action: Literal["cancel", "rerun"]
) -> None:
    """Cancel an evaluation or queue it again, after confirmation."""
    is_done = run.has_ended if action == "cancel" else run.state not in ("failed", "cancelled")
    if is_done:
        screen.notify(f"The model is {short_state(run)}.", title=f"There is nothing to {action}")
        return
    if action == "cancel":
        consequence = consequences.cancel_model(run)
        question = Question(f"Cancel the model {run.evaluation_id}", _of(run) + consequence, "Cancel it")
    else:
        consequence = consequences.RERUN_MODEL
        question = Question(f"Run the model {run.evaluation_id} again", _of(run) + consequence, "Run it")
    if await screen.confirm(question):
        await screen.perform(
            lambda client, key: (
                client.admin_cancel_evaluation(run.evaluation_id, idempotency_key=key)
                if action == "cancel"
                else client.admin_rerun_evaluation(run.evaluation_id, idempotency_key=key)
            ),
            lambda done: f"The model of {done.hub_username} is {short_state(done)}.",
        )


def _of(run: Evaluation) -> str:
    return f"Of {run.hub_username}, to {run.challenge}; {short_state(run)}. {run.reason or ''}\n\n"
