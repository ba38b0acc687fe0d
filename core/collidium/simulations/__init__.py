"""Simulation requests: place orders, run and follow their jobs, publish their output."""

from collidium.order import PRESETS, Order
from collidium.simulations import reports
from collidium.simulations.follower import followers, following, other_settings, processes, serving
from collidium.simulations.models import State, Step
from collidium.simulations.orders import estimate, limits
from collidium.simulations.placing import DeliveryOptions, place
from collidium.simulations.requests import (
    cancel,
    cancel_as_operator,
    find,
    find_as_operator,
    find_with_progress,
    forget,
    list_requests,
    ordered_by,
    output_of,
    stored_files,
    sweep,
    unfinished,
    watch,
    were_ordered,
)
from collidium.simulations.totals import TotalMismatch, audit

__all__ = [
    "PRESETS",
    "DeliveryOptions",
    "Order",
    "State",
    "Step",
    "TotalMismatch",
    "audit",
    "cancel",
    "cancel_as_operator",
    "estimate",
    "find",
    "find_as_operator",
    "find_with_progress",
    "followers",
    "following",
    "forget",
    "limits",
    "list_requests",
    "ordered_by",
    "other_settings",
    "output_of",
    "place",
    "processes",
    "reports",
    "serving",
    "stored_files",
    "sweep",
    "unfinished",
    "watch",
    "were_ordered",
]
