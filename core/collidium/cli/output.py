"""What commands print: data on standard output, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

import click

from collidium.cli.text import printable

Command = TypeVar("Command", bound=Callable[..., Any])

#: Columns when nobody looks: nothing is cut for want of room.
PIPED_WIDTH = 240


def json_option(command: Command) -> Command:
    """Add ``--json``; errors become JSON too, on standard error."""

    def remember(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
        ctx.find_root().obj.as_json = value
        return value

    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=remember, help="Print plain JSON."
    )(command)


def print_json(value: object) -> None:
    """Records, mappings and lists as JSON on standard output."""
    click.echo(json.dumps(plain(value), indent=2))


def plain(value: object) -> Any:
    """The value in JSON's own types: credits as numbers, times as RFC 3339."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int | float) else str(value)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """A table on standard output."""
    from rich.console import Console
    from rich.table import Table

    if title is not None:
        click.echo(f"\n{title}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(printable(column), overflow="fold")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def print_record(rows: Mapping[str, object]) -> None:
    """Names and values, a line each."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        click.echo(f"{name:<{width}}  {cell(value)}")


def cell(value: object) -> str:
    """A value as a person reads it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value))
    return printable(str(value))


def note(message: str) -> None:
    """Something for a person beside the data: standard error."""
    click.echo(printable(message), err=True)
