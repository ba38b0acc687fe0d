"""Tortoise: backends for both databases, and the columns of a model.

``sqlite``: immediate transactions, a connection of its own for reads, reads by key on the event loop, whole
transactions in the database's thread, waiters that end together while another process holds the database, and
an unlocked connection after a transaction that could not begin. Tortoise has no option for the first
(https://github.com/tortoise/tortoise-orm/issues/1675, open) and none for the others.
``postgres``: a transaction that cannot begin releases its connection; no issue is known upstream.
``meta``: a model's columns and conversions. ``Model.describe`` has neither as objects.

It can go when a backend takes the statement that begins a transaction, releases what could not begin, and
publishes its lock. Until then the bound is the next minor version: the names have changed in minor versions.
"""

from __future__ import annotations

from typing import Final

from tortoise.models import MetaInfo, Model

TESTED: Final = {"tortoise-orm": ("1.1.9",)}


def meta(model: type[Model] | Model) -> MetaInfo:
    """Return the columns of a model and their conversions."""
    return model._meta
