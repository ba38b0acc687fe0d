"""Simulation requests: ordering events, following their jobs, and handing over what they made."""

from collidium.order import PRESETS, Order
from collidium.simulations import reports
from collidium.simulations.follower import following
from collidium.simulations.orders import Estimate, Knob, Knobs, estimate, knobs
from collidium.simulations.placing import Placed, Wishes, place
from collidium.simulations.requests import (
    cancel,
    cancel_as_operator,
    find,
    find_as_operator,
    list_requests,
    output_of,
)
from collidium.simulations.states import State, Step
from collidium.simulations.totals import TotalMismatch, audit
from collidium.simulations.views import OperatorView, RequestView, as_json

__all__ = [
    "PRESETS",
    "Estimate",
    "Knob",
    "Knobs",
    "OperatorView",
    "Order",
    "Placed",
    "RequestView",
    "State",
    "Step",
    "TotalMismatch",
    "Wishes",
    "as_json",
    "audit",
    "cancel",
    "cancel_as_operator",
    "estimate",
    "find",
    "find_as_operator",
    "following",
    "knobs",
    "list_requests",
    "output_of",
    "place",
    "reports",
]
