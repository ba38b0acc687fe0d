"""``collidium datasets``: events on a hub or in a directory. Each command has a module of its own here."""

from __future__ import annotations

import click


@click.group()
def datasets() -> None:
    """See which events a hub or a directory has, and get what you need of them."""
