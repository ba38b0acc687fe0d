"""Events, written in the transaction that makes them true and delivered as webhooks."""

from collidium.outbox.deliverer import delivering
from collidium.outbox.deliveries import backlog, log_of, overdue_seconds, prune
from collidium.outbox.events import SIMULATION_COMPLETED, announce
from collidium.outbox.registration import find, forget, register, remove, require_secret
from collidium.outbox.urls import LONGEST_URL, canonical_url, require_reachable

__all__ = [
    "LONGEST_URL",
    "SIMULATION_COMPLETED",
    "announce",
    "backlog",
    "canonical_url",
    "delivering",
    "find",
    "forget",
    "log_of",
    "overdue_seconds",
    "prune",
    "register",
    "remove",
    "require_reachable",
    "require_secret",
]
