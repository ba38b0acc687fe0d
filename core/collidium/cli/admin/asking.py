"""Asking before something is done that takes something away."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def yes_option(command: Command) -> Command:
    """Add ``--yes`` to a command that asks first."""
    return click.option("--yes", is_flag=True, help="Do not ask first.")(command)


def ask(question: str, *, yes: bool) -> None:
    """Go on if ``yes``, if nobody sits at a terminal, or if whoever does agrees; else raises click.Abort."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True, err=True)
