"""What commands that list have in common: how much of a list they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

#: The longest page that the server gives.
LONGEST: Final = 1000


def limit_option(what: str, default: int = 20) -> Callable[[Command], Command]:
    """Add ``--limit`` to a command that lists ``what``."""
    return click.option(
        "--limit",
        type=click.IntRange(1, LONGEST),
        default=default,
        show_default=True,
        help=f"Most {what} shown.",
    )
