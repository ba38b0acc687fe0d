"""What operators do to models that the server runs: cancel one, or run it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.form import Question

if TYPE_CHECKING:
    from collidium.client import Evaluation


def state(run: Evaluation) -> str:
    """The state, with how far it is, or why it failed."""
    if run.state == "running":
        return f"running {run.events_done * 100 // max(run.events, 1)}%"
    return f"{run.state}: {run.code}" if run.code else run.state


async def operate_model(
    screen: ConsoleScreen[Any], run: Evaluation, action: Literal["cancel", "rerun"]
) -> None:
    """Ask, cancel an evaluation or put it into the queue again, and show the outcome."""
    is_done = run.has_ended if action == "cancel" else run.state not in ("failed", "cancelled")
    if is_done:
        screen.notify(f"The model is {state(run)}.", title=f"There is nothing to {action}", markup=False)
        return
    if action == "cancel":
        consequence = "It is not scored. Its owner may submit it again; it counts for the quota of the day."
        if run.price:
            consequence += f" The {run.price:,} credits are given back if it does not run yet."
        question = Question(f"Cancel the model {run.evaluation_id}", _of(run) + consequence, "Cancel it")
    else:
        consequence = "It is put into the queue again, and costs nothing more."
        question = Question(f"Run the model {run.evaluation_id} again", _of(run) + consequence, "Run it")
    if not await screen.confirm(question):
        return
    done = await screen.perform(
        lambda client, key: (
            client.admin_cancel_evaluation(run.evaluation_id, idempotency_key=key)
            if action == "cancel"
            else client.admin_rerun_evaluation(run.evaluation_id, idempotency_key=key)
        )
    )
    if done is not None:
        screen.notify(f"The model of {done.hub_username} is {state(done)}.", markup=False)


def _of(run: Evaluation) -> str:
    return f"Of {run.hub_username}, to {run.challenge}; {state(run)}. {run.reason or ''}\n\n"
