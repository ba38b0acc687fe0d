"""The columns of lists of simulation requests, and the states of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium.presentation.columns import ListColumn
from collidium.records.simulations import REQUEST_STATES

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from collidium.records import Moment, SimulationRequest

_Column = ListColumn["SimulationRequest"]

STATES: Final = REQUEST_STATES


def is_being_cancelled(request: SimulationRequest) -> bool:
    """Whether its cancellation is pending."""
    return request.cancel_requested and not request.has_ended


def state_text(request: SimulationRequest) -> str:
    """Return the state, and whether cancellation is pending."""
    return f"{request.state} (being cancelled)" if is_being_cancelled(request) else request.state


def short_state(request: SimulationRequest) -> str:
    """Return the state in a word, or that it is being cancelled."""
    return "cancelling" if is_being_cancelled(request) else request.state


REQUEST: Final[_Column] = ListColumn("request", lambda request: request.request_id)
ACCOUNT: Final[_Column] = ListColumn("account", lambda request: request.hub_username, width=13)
STATE: Final[_Column] = ListColumn("state", state_text)
CHANNEL: Final[_Column] = ListColumn("channel", lambda request: request.channel)
EVENTS: Final[_Column] = ListColumn("events", lambda request: request.events, right=True)
PILEUP: Final[_Column] = ListColumn("pileup", lambda request: request.pileup, right=True)
CREDITS: Final[_Column] = ListColumn("credits", lambda request: request.credits_charged, right=True)
REFUNDED: Final[_Column] = ListColumn("refunded", lambda request: request.credits_refunded, right=True)
ORDERED: Final[_Column] = ListColumn("ordered", lambda request: request.created_at)
REASON: Final[_Column] = ListColumn("reason", lambda request: request.reason)


def in_commands(*, accounts: bool = False) -> list[_Column]:
    """Return the columns at a command, with the account of each request if ``accounts``."""
    return [REQUEST, *([ACCOUNT] if accounts else []), STATE, CHANNEL, EVENTS, PILEUP, CREDITS, ORDERED]


def in_console(brief: Callable[[datetime], str]) -> list[_Column]:
    """Return the columns in the console, the most important in the first 80 cells.

    ``brief`` formats the time of the order.
    """
    return [
        ListColumn("request", REQUEST.value, lambda request: request.request_id[:8], width=8),
        ListColumn("state", short_state, width=10),
        ACCOUNT,
        ListColumn("channel", CHANNEL.value, width=12),
        ListColumn("events", EVENTS.value, right=True, width=7),
        ListColumn("pu", PILEUP.value, right=True, width=3),
        ListColumn("ordered", ORDERED.value, lambda request: brief(request.created_at), width=11),
        ListColumn("credits", CREDITS.value, right=True, width=9),
        REASON,
    ]


#: Of one account, for operators.
OF_ACCOUNT: Final[list[_Column]] = [
    ListColumn("state", lambda request: request.state),
    *[ORDERED.titled("when"), CHANNEL, EVENTS, PILEUP],
    *[CREDITS.titled("charged"), REFUNDED, REASON, REQUEST],
]

TIMELINE: Final[list[ListColumn[Moment]]] = [
    ListColumn("when", lambda moment: moment.at, width=19),
    ListColumn("state", lambda moment: moment.state, width=10),
    ListColumn("what happened", lambda moment: moment.reason),
]
