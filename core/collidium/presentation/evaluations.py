"""The columns of lists of submitted models, and how the state of one is described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from collidium.presentation.columns import ListColumn
from collidium.records.evaluations import EvaluationState

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from collidium.records import EvaluatedModel, Evaluation

_Column = ListColumn["Evaluation"]

STATES: Final = get_args(EvaluationState)


def state_text(found: Evaluation) -> str:
    """Return the state, with the progress of a running evaluation."""
    if found.state != "running":
        return found.state
    return f"running, {found.events_done} of {found.events} events"


def short_state(found: Evaluation) -> str:
    """Return the state, with the progress in per cent or the code of a failure."""
    if found.state == "running":
        return f"running {found.events_done * 100 // max(found.events, 1)}%"
    return f"{found.state}: {found.code}" if found.code else found.state


def cost_facts(model: EvaluatedModel) -> dict[str, object]:
    """Return size and speed of a model that the server ran, by name."""
    facts: dict[str, object] = {"parameters": model.n_params, "bytes": model.file_bytes}
    if model.seconds is not None:
        facts["seconds of an event"] = f"{model.seconds:.3g} ± {model.seconds_error or 0:.1g}"
    return facts


EVALUATION: Final[_Column] = ListColumn("evaluation", lambda found: found.evaluation_id)
ACCOUNT: Final[_Column] = ListColumn("account", lambda found: found.hub_username, longest=16)
CHALLENGE: Final[_Column] = ListColumn("challenge", lambda found: found.challenge, longest=20)
STATE: Final[_Column] = ListColumn("state", state_text)
PARAMETERS: Final[_Column] = ListColumn("parameters", lambda found: found.n_params)
RECEIVED: Final[_Column] = ListColumn("received", lambda found: found.received_at)
SUBMISSION: Final[_Column] = ListColumn("submission", lambda found: found.submission_id)


def in_commands(*, accounts: bool = False) -> list[_Column]:
    """Return the columns at a command, with the account of each if ``accounts``."""
    return [EVALUATION, *([ACCOUNT] if accounts else []), CHALLENGE, STATE, PARAMETERS, RECEIVED, SUBMISSION]


def facts(found: Evaluation) -> dict[str, object]:
    """Return what a user reads about an evaluation, by name."""
    reason: ListColumn[Evaluation] = ListColumn("reason", lambda found: found.reason)
    columns = (EVALUATION, CHALLENGE, STATE, reason, PARAMETERS, RECEIVED, SUBMISSION)
    return {column.title: column.shown(found) for column in columns}


def in_console(age: Callable[[datetime], str]) -> list[_Column]:
    """Return the columns in the console; ``age`` formats the time since a model was received."""
    return [
        ListColumn("state", short_state),
        ListColumn("age", RECEIVED.value, lambda found: age(found.received_at)),
        CHALLENGE,
        ACCOUNT,
        ListColumn("machine", lambda found: found.machine, longest=16),
        EVALUATION,
    ]
