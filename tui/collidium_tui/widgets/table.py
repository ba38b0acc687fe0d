"""A table of records, with pages, sorting, copying and CSV export."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from collidium.overrides.textual import DataTable
from collidium.presentation.columns import ListColumn
from collidium_tui.session import console_of
from collidium_tui.widgets.text import cell, counted, shortened

if TYPE_CHECKING:
    from collidium.client import Page


Row = TypeVar("Row")

#: Rows on a page of a list that the server pages.
PAGE: Final = 50

_DESCENDING_FIRST: Final = (int, float, Decimal, datetime)


#: A column; what its ``show`` returns may have styles.
Column = ListColumn


class Table(DataTable[Text], Generic[Row]):
    """A table of rows, each identified by ``key``, which is also the text that ``c`` copies.

    For a list with pages, the screen fetches the page at ``table.cursor`` and calls :meth:`show_page`. The
    keys ``n`` and ``p`` change the cursor and post :class:`PageChanged`. Other lists are shown by
    :meth:`show_rows`. Enter on a row posts :class:`Chosen`. The cursor stays on its row when the rows change.
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
        """The screen has to fetch the page at ``table.cursor``."""

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
        """Create a table; ``of`` names the rows ("requests") in the subtitle and in exports.

        The first ``fixed`` columns do not scroll.
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
        """The ``cursor`` of the call that fetches the current page."""
        return self._cursors[-1]

    def show_page(self, page: Page[Row]) -> None:
        """Show the page that was fetched at :attr:`cursor`."""
        self._next = page.next_cursor
        self.show_rows(page.items)

    def show_rows(self, rows: Iterable[Row]) -> None:
        """Show these rows, and keep cursor and scroll position."""
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
        """Go back to the first page, for example after a change of filters."""
        self._cursors = [None]
        self._next = None

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
            self.notify(f"Copied {self._key(self.current)}")

    def action_export(self) -> None:
        self.run_worker(self._export(), group="exporting")

    def action_sort(self) -> None:
        self._sort_by(0 if self._sorted_by is None else (self._sorted_by + 1) % len(self._columns))

    def action_reverse(self) -> None:
        self._sort_by(self._sorted_by or 0)

    def action_turn_page(self, direction: int) -> None:
        if direction > 0 and self._next is not None:
            self._cursors.append(self._next)
        elif direction < 0 and len(self._cursors) > 1:
            self._cursors.pop()
        else:
            return
        self._next = None  # until the page is fetched
        self.post_message(self.PageChanged(self))

    # -- inside ---------------------------------------------------------------------------------------

    async def _export(self) -> None:
        """Write the rows to a file in the working directory."""
        stem = f"collidium-{self.of}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}".replace(" ", "-")
        titles = [column.title for column in self._columns]
        rows = [[column.value(row) for column in self._columns] for row in self._sorted_records()]
        try:
            path = await asyncio.to_thread(write_csv, Path.cwd(), stem, titles, rows)
        except OSError as error:
            self.notify(f"Not exported: {error}", severity="error")
        else:
            page = f" of page {len(self._cursors)}" if self._is_paged else ""
            self.notify(f"{counted(len(rows), self.of)}{page} written to {path}")

    def _add_header(self) -> None:
        for number, column in enumerate(self._columns):
            # At the beginning, so that a narrow column does not cut it off.
            mark = ("v" if self._descending else "^") if number == self._sorted_by else ""
            title = Text(mark + column.title, justify="right" if column.right else "left")
            self.add_column(title, width=column.width)

    def _cell(self, column: Column[Row], row: Row) -> Text:
        shown = column.shown(row)
        if isinstance(shown, Text):
            return shown
        text = cell(shown, console_of(self).times)
        if column.longest is not None:
            text = Text(shortened(text.plain, column.longest), no_wrap=True)
        text.justify = "right" if column.right else "left"
        return text

    def _sorted_records(self) -> Sequence[Row]:
        if self._sorted_by is None:
            return self.records
        value = self._columns[self._sorted_by].value
        present = [row for row in self.records if value(row) is not None]
        missing = [row for row in self.records if value(row) is None]
        return sorted(present, key=value, reverse=self._descending) + missing

    def _is_descending_first(self, number: int) -> bool:
        """Whether a column is first sorted in descending order, as numbers and times are."""
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


#: Characters at which spreadsheets begin a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 -- meant


def write_csv(directory: Path, stem: str, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a new file ``<stem>.csv`` or ``<stem>-2.csv`` and so on, and return its path.

    Times are in UTC, numbers exact. Text that a spreadsheet would read as a formula is prefixed by an
    apostrophe. Raises OSError after removing the incomplete file.
    """
    path, file = _new_file(directory, stem)
    try:
        with file:
            writer = csv.writer(file)
            writer.writerow([_exported(title) for title in titles])
            writer.writerows([_exported(value) for value in row] for row in rows)
    except BaseException:  # raised again
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
