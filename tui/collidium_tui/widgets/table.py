"""A table of records: pages from the server, a cursor that stays on its row, copy, sorting, CSV files."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable
from textual.widgets.data_table import RowKey

from collidium_tui.session import console_of
from collidium_tui.widgets.text import cell, counted, shortened

if TYPE_CHECKING:
    from collidium.client import Page


Row = TypeVar("Row")

#: Rows on a page of a list that the server pages.
PAGE: Final = 50

_DESCENDING_FIRST: Final = (int, float, Decimal, datetime)


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column: ``value`` is sorted by and exported as it is, and shown by its type or by ``show``."""

    title: str
    value: Callable[[Row], Any]
    show: Callable[[Row], Text] | None = None
    #: Numbers stand to the right.
    right: bool = False
    width: int | None = None
    #: Longer values are shortened in the middle, to so many cells.
    longest: int | None = None


class Table(DataTable[Text], Generic[Row]):
    """Rows of one kind, each known by ``key``, which is what "copy" copies.

    A list that the server pages is shown a page at a time: the screen asks for ``table.cursor`` and hands
    the page to :meth:`show_page`; ``n`` and ``p`` turn the page and have the screen ask again
    (:class:`PageChanged`). Other rows are shown whole, by :meth:`show_rows`.
    Enter on a row posts :class:`Chosen`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "Copy id", show=False),
        Binding("e", "export", "Export CSV", show=False),
        Binding("s", "sort", "Sort by next column", show=False),
        Binding("S", "reverse", "Sort the other way round", show=False),
        Binding("n", "turn_page(1)", "Next page", show=False),
        Binding("p", "turn_page(-1)", "Previous page", show=False),
    ]

    class PageChanged(Message):
        """Another page is needed: the screen fetches again, from ``table.cursor``."""

        def __init__(self, table: Table[Any]) -> None:
            super().__init__()
            self.table = table

    class Chosen(Message):
        """Enter on a row."""

        def __init__(self, table: Table[Any], row: Any) -> None:
            super().__init__()
            self.table = table
            self.row = row

        @property
        def control(self) -> Table[Any]:
            return self.table

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        key: Callable[[Row], str],
        *,
        of: str,
        id: str | None = None,  # noqa: A002 -- as every widget has it
        fixed: int = 0,
    ) -> None:
        """``of`` names the rows ("requests"), in the file name of an export and in the line below.

        The first ``fixed`` columns stay when the others are scrolled.
        """
        super().__init__(id=id, cursor_type="row", zebra_stripes=True, fixed_columns=fixed)
        self.of = of
        self.records: tuple[Row, ...] = ()
        self._columns = tuple(columns)
        self._key = key
        self._sorted_by: int | None = None
        self._descending = False
        self._cursors: list[str | None] = [None]
        self._next: str | None = None

    def on_mount(self) -> None:
        self._add_header()

    # -- what is shown --------------------------------------------------------------------------------

    @property
    def cursor(self) -> str | None:
        """Where the page that is shown begins: the ``cursor`` of the call that asks for it."""
        return self._cursors[-1]

    def show_page(self, page: Page[Row]) -> None:
        """Show the page fetched at ``cursor``."""
        self._next = page.next_cursor
        self.show_rows(page.items)

    def show_rows(self, rows: Iterable[Row]) -> None:
        """Show these rows; cursor and scroll position are kept."""
        chosen, top = self.current, self.scroll_y
        self.records = tuple(rows)
        self.clear()
        shown = self._sorted_records()
        keys = [self._key(row) for row in shown]
        for row in shown:
            self.add_row(*(self._cell(column, row) for column in self._columns))
        if chosen is not None and self._key(chosen) in keys:
            self.move_cursor(row=keys.index(self._key(chosen)), animate=False, scroll=False)
            self.scroll_to(y=top, animate=False)
        self.border_subtitle = self._subtitle()

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        shown = self._sorted_records()
        return shown[self.cursor_row] if 0 <= self.cursor_row < len(shown) else None

    def restart(self) -> None:
        """Go back to the first page: for a screen whose filter has changed."""
        self._cursors = [None]
        self._next = None

    def _update_dimensions(self, new_rows: Iterable[RowKey]) -> None:
        """As Textual does, which keeps lines that were drawn with the widths of before."""
        super()._update_dimensions(new_rows)
        self._clear_caches()

    # -- keys -----------------------------------------------------------------------------------------

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if self.current is not None:
            self.post_message(self.Chosen(self, self.current))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        event.stop()
        self._sort_by(event.column_index)

    def action_copy(self) -> None:
        if self.current is not None:
            self.app.copy_to_clipboard(self._key(self.current))
            self.notify(f"Copied {self._key(self.current)}", markup=False)

    def action_export(self) -> None:
        self.run_worker(self._export(), group="exporting")

    def action_sort(self) -> None:
        self._sort_by(0 if self._sorted_by is None else (self._sorted_by + 1) % len(self._columns))

    def action_reverse(self) -> None:
        self._sort_by(self._sorted_by or 0)

    def action_turn_page(self, way: int) -> None:
        if way > 0 and self._next is not None:
            self._cursors.append(self._next)
        elif way < 0 and len(self._cursors) > 1:
            self._cursors.pop()
        else:
            return
        self._next = None  # the next page brings its own
        self.post_message(self.PageChanged(self))

    # -- inside ---------------------------------------------------------------------------------------

    async def _export(self) -> None:
        """Write the rows that are shown into a file where the console was started."""
        stem = f"collidium-{self.of}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}".replace(" ", "-")
        titles = [column.title for column in self._columns]
        rows = [[column.value(row) for column in self._columns] for row in self._sorted_records()]
        try:
            path = await asyncio.to_thread(write_csv, Path.cwd(), stem, titles, rows)
        except OSError as error:
            self.notify(f"Not exported: {error}", severity="error", markup=False)
        else:
            page = f" of page {len(self._cursors)}" if self._is_paged else ""
            self.notify(f"{counted(len(rows), self.of)}{page} written to {path}", markup=False)

    def _add_header(self) -> None:
        for number, column in enumerate(self._columns):
            # In front, where a narrow column does not cut it off.
            mark = ("v" if self._descending else "^") if number == self._sorted_by else ""
            title = Text(mark + column.title, justify="right" if column.right else "left")
            self.add_column(title, width=column.width)

    def _cell(self, column: Column[Row], row: Row) -> Text:
        if column.show is not None:
            return column.show(row)
        text = cell(column.value(row), console_of(self).times)
        if column.longest is not None:
            text = Text(shortened(text.plain, column.longest), no_wrap=True)
        text.justify = "right" if column.right else "left"
        return text

    def _sorted_records(self) -> Sequence[Row]:
        if self._sorted_by is None:
            return self.records
        value = self._columns[self._sorted_by].value
        there = [row for row in self.records if value(row) is not None]
        missing = [row for row in self.records if value(row) is None]
        return sorted(there, key=value, reverse=self._descending) + missing

    def _is_descending_first(self, number: int) -> bool:
        """Whether a column sorts from its largest value first: numbers and times, but not names."""
        values = (self._columns[number].value(row) for row in self.records)
        return isinstance(next((value for value in values if value is not None), None), _DESCENDING_FIRST)

    def _sort_by(self, number: int) -> None:
        self._descending = (
            not self._descending if number == self._sorted_by else self._is_descending_first(number)
        )
        self._sorted_by = number
        rows = self.records
        self.clear(columns=True)
        self._add_header()
        self.show_rows(rows)

    @property
    def _is_paged(self) -> bool:
        return self._next is not None or len(self._cursors) > 1

    def _subtitle(self) -> str:
        if not self._is_paged:
            return counted(len(self.records), self.of)
        turns = [*(["p: previous"] if len(self._cursors) > 1 else []), *(["n: next"] if self._next else [])]
        return f"page {len(self._cursors)} of {self.of} ({', '.join(turns)})"


#: What a spreadsheet takes for the beginning of a formula, in any script.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 -- meant


def write_csv(directory: Path, stem: str, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a new file ``<stem>.csv``, with a number where that is taken; returns its path.

    Times are in UTC, numbers exact. Text that a spreadsheet would take for a formula gets an apostrophe in
    front. Raises OSError, and leaves nothing behind then.
    """
    path, file = _new_file(directory, stem)
    try:
        with file:
            writer = csv.writer(file)
            writer.writerow([_exported(title) for title in titles])
            writer.writerows([_exported(value) for value in row] for row in rows)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _new_file(directory: Path, stem: str) -> tuple[Path, IO[str]]:
    for number in count(1):
        path = directory / (f"{stem}.csv" if number == 1 else f"{stem}-{number}.csv")
        try:
            return path, path.open("x", newline="", encoding="utf-8", errors="backslashreplace")
        except FileExistsError:
            continue
    raise AssertionError("numbers do not end")


def _exported(value: Any) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
