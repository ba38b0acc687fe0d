"""Simulation requests: ordering events, following their jobs, and handing over what they made."""

from collidium.order import PRESETS, Order
from collidium.simulations import reports
from collidium.simulations.follower import following
from collidium.simulations.orders import Estimate, estimate
from collidium.simulations.placing import Placed, Wishes, place
from collidium.simulations.requests import (
    cancel,
    cancel_as_operator,
    find,
    list_requests,
    output_of,
)
from collidium.simulations.states import State
from collidium.simulations.totals import TotalMismatch, audit
from collidium.simulations.views import RequestView, as_json

__all__ = [
    "PRESETS",
    "Estimate",
    "Order",
    "Placed",
    "RequestView",
    "State",
    "TotalMismatch",
    "Wishes",
    "as_json",
    "audit",
    "cancel",
    "cancel_as_operator",
    "estimate",
    "find",
    "following",
    "list_requests",
    "output_of",
    "place",
    "reports",
]
