"""What commands print: data on standard output, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import click

from collidium.cli.text import printable, width_of, wrapped
from collidium.records import Record

Command = TypeVar("Command", bound=Callable[..., Any])

#: From here on a number has four significant digits before its point.
FOUR_DIGITS = 1000


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
    if isinstance(value, Record):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
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
    """A table on standard output; on a terminal that is too narrow for it, a small record for each row."""
    if title is not None:
        click.echo(f"\n{title}")
    cells = [[cell(value) for value in row] for row in rows]
    for line in table_lines([*map(printable, columns)], cells, width_of(sys.stdout)):
        click.echo(line)


def print_record(rows: Mapping[str, object]) -> None:
    """Names and values, a line each."""
    cells = {printable(name): cell(value) for name, value in rows.items()}
    for line in record_lines(cells, width_of(sys.stdout)):
        click.echo(line)


def print_paragraph(text: str) -> None:
    """Prose on standard output, between empty lines."""
    click.echo(f"\n{wrapped(printable(text), width_of(sys.stdout))}\n")


def cell(value: object) -> str:
    """A value as a person reads it; ``--json`` has it in full."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < FOUR_DIGITS else f"{value:.0f}"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "-"
    return printable(str(value)) or "-"


def moment(text: str | None) -> datetime | str | None:
    """The time that a hub tells as text, for `cell`; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return text


def note(message: str) -> None:
    """Something for a person beside the data: standard error, a paragraph as wide as the terminal."""
    text = printable(message)
    indent = text[: len(text) - len(text.lstrip("* "))]
    click.echo(
        wrapped(text.lstrip("* "), width_of(sys.stderr), first=indent, rest=" " * len(indent)), err=True
    )


GAP = "  "


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """The rows below their headings where that fits into ``width`` columns, else a small record for each.

    Nothing is ever cut or broken inside a word, and no line ends with spaces.
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
        if not rows:
            yield "(none)"
        for number, row in enumerate(rows):
            if number:
                yield ""
            yield from record_lines(dict(zip(columns, row, strict=True)), width)
        return
    for cells in (columns, *rows):
        yield GAP.join(f"{text:<{size}}" for text, size in zip(cells, widths, strict=True)).rstrip()


def record_lines(record: Mapping[str, str], width: int | None) -> Iterator[str]:
    """Names and values, a line each; a long value goes on below where it began."""
    size = max(map(len, record), default=0)
    for name, value in record.items():
        label = f"{name:<{size}}{GAP}"
        yield from wrapped(value, width, first=label, rest=" " * len(label)).splitlines()
