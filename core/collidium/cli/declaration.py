"""Options of commands, made from declared fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from click.core import ParameterSource

from collidium.cli.options import EXISTING_FILE, date_type

if TYPE_CHECKING:
    from collidium.declaration import DeclaredField

Command = TypeVar("Command", bound=Callable[..., Any])

#: How an option of a text gives None; what null means follows ``null:`` in the help of a field.
_NO_TEXT: Final = "''"


def declared_options(
    fields: Iterable[DeclaredField], parameter: str, *, is_change: bool = False
) -> Callable[[Command], Command]:
    """Add an option for each declared field; the command gets those that are given as ``parameter``.

    ``is_change``: others stay as they are, whatever their defaults.
    """
    declared = tuple(fields)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **parameters: Any) -> Any:
            values = {field: parameters.pop(field.name) for field in declared}
            source = click.get_current_context().get_parameter_source
            given = {
                field.name: _parsed(field, value)
                for field, value in values.items()
                if source(field.name) is not ParameterSource.DEFAULT
            }
            return command(*args, **parameters, **{parameter: given})

        for field in reversed(declared):
            run = _option(field, is_change)(run)
        return cast(Command, run)

    return decorate


def _option(field: DeclaredField, is_change: bool) -> Callable[[Command], Command]:
    name, text = field.option or f"--{field.name.replace('_', '-')}", _help(field, is_change)
    if field.type is bool:
        return click.option(f"{name}/--no-{name[2:]}", field.name, default=None, help=text)
    return click.option(name, field.name, type=_type(field), help=text)


def _help(field: DeclaredField, is_change: bool) -> str:
    text, _, null = field.help.removesuffix(".").partition("; null: ")
    none = {datetime: field.none, str: _NO_TEXT}.get(field.type)
    if null and none:
        text += f"; {none}: {null}"
    elif (default := null or field.default) and not is_change:
        text += f"; default: {default}"
    return f"{text}."


def _type(field: DeclaredField) -> Any:
    if field.choices:
        return click.Choice(field.choices)
    if field.is_document:
        return EXISTING_FILE
    if field.is_number and field.is_limited_by_schema:
        return click.IntRange(field.minimum, field.maximum)
    return date_type(field.none) if field.type is datetime else field.type


def _parsed(field: DeclaredField, value: Any) -> Any:
    if field.is_document:
        return value.read_text(encoding="utf-8")
    return None if field.is_nullable and value == "" else value
