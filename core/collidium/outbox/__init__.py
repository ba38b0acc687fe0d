"""The outbox: events, written in the transaction that causes them and delivered as webhooks and e-mail."""

from collidium.outbox import recipients
from collidium.outbox.deliverer import delivering
from collidium.outbox.deliveries import backlog, log_of, overdue_seconds, prune
from collidium.outbox.events import TYPES, Kind, announce
from collidium.outbox.mail import LINK_PATH
from collidium.outbox.webhooks import (
    HTTPS,
    LONGEST_URL,
    canonical_url,
    find,
    forget,
    register,
    remove,
    require_reachable,
    require_secret,
)

__all__ = [
    "HTTPS",
    "LINK_PATH",
    "LONGEST_URL",
    "TYPES",
    "Kind",
    "announce",
    "backlog",
    "canonical_url",
    "delivering",
    "find",
    "forget",
    "log_of",
    "overdue_seconds",
    "prune",
    "recipients",
    "register",
    "remove",
    "require_reachable",
    "require_secret",
]
