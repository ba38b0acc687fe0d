"""Output of commands: data on standard output as tables, records or JSON; notes on standard error."""

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
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from collidium.presentation.columns import ListColumn

Value = TypeVar("Value")

#: A column of a table: the name of a field, or a function of the item.
ColumnSpec = str | Callable[[Any], object]
Columns = Mapping[str, ColumnSpec] | Sequence["ListColumn[Any]"]

#: Numbers from here on are shown as integers, smaller ones with four significant digits.
FOUR_DIGITS = 1000


def json_wanted() -> bool:
    """Whether the command was called with ``--json``."""
    return bool(click.get_current_context().find_root().obj.as_json)


def print_json(value: object) -> None:
    """Print records, mappings and lists as JSON."""
    click.echo(json.dumps(plain(value), indent=2))


def plain(value: object) -> Any:
    """Convert a value to the types of JSON: credits to numbers, times to RFC 3339."""
    if names := getattr(value, "__struct_fields__", ()):  # a record; importing the class is slow
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


def show_value(value: Value, print_text: Callable[[Value], object]) -> None:
    """Print ``value`` as JSON with ``--json``, else call ``print_text`` with it."""
    if json_wanted():
        print_json(value)
    else:
        print_text(value)


def show_record(value: object, rows: Mapping[str, object]) -> None:
    """Print ``value`` as JSON with ``--json``, else ``rows``: a name and a value per line."""
    show_value(value, lambda _: print_record(rows))


def show_items(items: Sequence[object], columns: Columns) -> None:
    """Print ``items`` as JSON with ``--json``, else as a table with these columns."""
    show_value(items, lambda _: print_items(items, columns))


def show_message(value: object, message: str) -> None:
    """Print ``value`` as JSON with ``--json``, else a sentence."""
    show_value(value, lambda _: click.echo(printable(message)))


def print_items(items: Iterable[object], columns: Columns, *, title: str | None = None) -> None:
    """Print a table with a row for each item."""
    specs = columns.items() if isinstance(columns, Mapping) else [(one.title, one.shown) for one in columns]
    rows = ([_of(item, column) for _, column in specs] for item in items)
    print_table([heading for heading, _ in specs], rows, title=title)


def _of(item: object, column: ColumnSpec) -> object:
    return getattr(item, column) if isinstance(column, str) else column(item)


def print_table(
    columns: Iterable[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Print a table, or a record per row if the terminal is too narrow for the table."""
    if title is not None:
        click.echo(f"\n{title}")
    cells = [[cell(value) for value in row] for row in rows]
    for line in table_lines([*map(printable, columns)], cells, width_of(sys.stdout)):
        click.echo(line)


def print_record(rows: Mapping[str, object]) -> None:
    """Print a name and a value per line."""
    cells = {printable(name): cell(value) for name, value in rows.items()}
    for line in record_lines(cells, width_of(sys.stdout)):
        click.echo(line)


def print_paragraph(text: str) -> None:
    """Print prose between empty lines."""
    click.echo(f"\n{wrapped(printable(text), width_of(sys.stdout))}\n")


def cell(value: object) -> str:
    """Format a value for a table; ``--json`` has full precision."""
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
    """Parse a hub's time for `cell`; return other text unchanged."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return text


def note(message: str) -> None:
    """Print a message to standard error, wrapped to the terminal."""
    click.echo(_wrapped_for(sys.stderr, message), err=True)


def print_text(text: str) -> None:
    """Print a line of text to standard output, wrapped to the terminal."""
    click.echo(_wrapped_for(sys.stdout, text))


def _wrapped_for(stream: TextIO, message: str) -> str:
    text = printable(message)
    indent = text[: len(text) - len(text.lstrip("* "))]
    return wrapped(text.lstrip("* "), width_of(stream), first=indent, rest=" " * len(indent))


GAP = "  "


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Yield the lines of a table, or of a record per row if the table is wider than ``width`` columns.

    Words are never cut or broken, and no line ends with spaces.
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
    """Yield a name and a value per line; a long value continues in the next lines, indented."""
    size = max(map(len, record), default=0)
    for name, value in record.items():
        label = f"{name:<{size}}{GAP}"
        yield from wrapped(value, width, first=label, rest=" " * len(label)).splitlines()


def printable(text: str) -> str:
    """Replace control characters: text of a server or a file must not control the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def short_reference(reference: str) -> str:
    """Shorten the ids in the reference of a ledger entry; ``--json`` has them in full."""
    return re.sub(r"\b([0-9a-f]{8})[0-9a-f]{24}\b", r"\1", reference)


def width_of(stream: TextIO) -> int | None:
    """Return the width of the terminal behind the stream; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrapped(text: str, width: int | None, *, first: str = "", rest: str = "") -> str:
    """Wrap a paragraph to ``width`` columns.

    ``first`` is put before the first line and ``rest`` before the others. Words longer than a line are not
    broken, so that names can be copied.
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
