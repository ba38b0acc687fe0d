"""What commands print: data on standard output, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TextIO

import click

#: A column of a table: the name of a field, or what is shown of an item.
ColumnSpec = str | Callable[[Any], object]

#: From here on a number has four significant digits before its point.
FOUR_DIGITS = 1000


def print_json(value: object) -> None:
    """Records, mappings and lists as JSON on standard output."""
    click.echo(json.dumps(plain(value), indent=2))


def plain(value: object) -> Any:
    """The value in JSON's own types: credits as numbers, times as RFC 3339."""
    if names := getattr(value, "__struct_fields__", ()):  # a record; to import them takes its time
        return {name: plain(getattr(value, name)) for name in names}
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


def show_record(value: object, rows: Mapping[str, object], *, as_json: bool) -> None:
    """The value as JSON, or ``rows``: names and values, a line each."""
    if as_json:
        print_json(value)
    else:
        print_record(rows)


def show_items(items: Sequence[object], columns: Mapping[str, ColumnSpec], *, as_json: bool) -> None:
    """The items as JSON, or as a table with these headings."""
    if as_json:
        print_json(items)
    else:
        print_items(items, columns)


def show_message(value: object, message: str, *, as_json: bool) -> None:
    """The value as JSON, or a sentence for people on standard output."""
    if as_json:
        print_json(value)
    else:
        click.echo(printable(message))


def print_items(
    items: Iterable[object], columns: Mapping[str, ColumnSpec], *, title: str | None = None
) -> None:
    """A table with a row for each item."""
    print_table(columns, ([_of(item, column) for column in columns.values()] for item in items), title=title)


def _of(item: object, column: ColumnSpec) -> object:
    return getattr(item, column) if isinstance(column, str) else column(item)


def print_table(
    columns: Iterable[str], rows: Iterable[Sequence[object]], *, title: str | None = None
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
    """A hub's time, which is text, for `cell`; any other text is returned unchanged."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return text


def note(message: str) -> None:
    """A message for people, next to the data: on standard error, as wide as the terminal."""
    click.echo(_as_wide_as(sys.stderr, message), err=True)


def print_text(text: str) -> None:
    """A line of text that is data: on standard output, as wide as the terminal."""
    click.echo(_as_wide_as(sys.stdout, text))


def _as_wide_as(stream: TextIO, message: str) -> str:
    text = printable(message)
    indent = text[: len(text) - len(text.lstrip("* "))]
    return wrapped(text.lstrip("* "), width_of(stream), first=indent, rest=" " * len(indent))


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
    """Names and values, a line each; a long value continues below its beginning."""
    size = max(map(len, record), default=0)
    for name, value in record.items():
        label = f"{name:<{size}}{GAP}"
        yield from wrapped(value, width, first=label, rest=" " * len(label)).splitlines()


def printable(text: str) -> str:
    """The text without control characters: what comes from a server or a file must not drive a terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def short_reference(reference: str) -> str:
    """A ledger entry's reference with its long ids shortened; ``--json`` has them whole."""
    return re.sub(r"\b([0-9a-f]{8})[0-9a-f]{24}\b", r"\1", reference)


def width_of(stream: TextIO) -> int | None:
    """Columns of the terminal behind the stream; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrapped(text: str, width: int | None, *, first: str = "", rest: str = "") -> str:
    """One paragraph in lines of at most ``width`` columns, broken between words only.

    ``first`` stands before the first line and ``rest`` before each other one. A word that is longer than a
    line stays whole: a name that is cut cannot be copied.
    """
    if width is None:
        return first + text
    lines = textwrap.wrap(
        text,
        max(width, len(rest) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) or first.rstrip()
