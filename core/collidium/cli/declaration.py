"""Options of commands, made from declared fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from collidium.declaration import DeclaredField

Command = TypeVar("Command", bound=Callable[..., Any])


def declared_options(fields: Iterable[DeclaredField], parameter: str) -> Callable[[Command], Command]:
    """Add an option for each declared field; the command gets those that are given as ``parameter``."""
    declared = tuple(fields)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **parameters: Any) -> Any:
            values = {field.name: parameters.pop(field.name) for field in declared}
            given = {name: value for name, value in values.items() if value is not None}
            return command(*args, **parameters, **{parameter: given})

        for field in reversed(declared):
            run = _option(field)(run)
        return cast(Command, run)

    return decorate


def _option(field: DeclaredField) -> Callable[[Command], Command]:
    default = f"; default: {field.default}." if field.default else "."
    return click.option(
        f"--{field.name.replace('_', '-')}", type=field.type, help=field.help.removesuffix(".") + default
    )
