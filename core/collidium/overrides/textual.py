"""Textual: an application's own handling of unhandled exceptions, and tables without outdated lines.

- Textual prints a traceback with the values of variables, and has no public hook for it
  (https://github.com/Textualize/textual/issues/2818, closed without one).
- A table keeps drawn lines in a cache, which it does not clear when the widths of its columns change. No
  issue is known; https://github.com/Textualize/textual/issues/3449 (open) is about the widths themselves.

It can go when Textual has a hook for exceptions, and clears its cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from textual.app import App as TextualApp
from textual.widgets import DataTable as TextualDataTable
from textual.widgets.data_table import RowKey

TESTED: Final = {"textual": ("8.0.0", "8.2.8")}

Result = TypeVar("Result")
Cell = TypeVar("Cell")


class ConsoleApp(TextualApp[Result]):
    """An application that handles its own unhandled exceptions."""

    def handle_exception(self, error: Exception) -> None:
        """Handle an exception that nothing else has handled; it has to end the application."""
        super()._handle_exception(error)

    def _handle_exception(self, error: Exception) -> None:
        self.handle_exception(error)


class DataTable(TextualDataTable[Cell]):
    """A table that draws its lines again when the widths of columns change."""

    def _update_dimensions(self, new_rows: Iterable[RowKey]) -> None:
        super()._update_dimensions(new_rows)
        self._clear_caches()
