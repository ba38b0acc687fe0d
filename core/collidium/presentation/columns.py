"""A column of a list of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

Row = TypeVar("Row", contravariant=True)

#: Width of a name in lists of the console, including the mark of a baseline.
LONGEST_NAME: Final = 24


@dataclass(frozen=True, slots=True)
class ListColumn(Generic[Row]):
    """A column. ``value`` is used for sorting and export, and is shown by its type or by ``show``."""

    title: str
    value: Callable[[Row], Any]
    show: Callable[[Row], Any] | None = None
    #: Whether to align right, as numbers.
    right: bool = False
    #: Width in the console.
    width: int | None = None
    #: Maximum width in the console; longer values are shortened in the middle.
    longest: int | None = None
    #: By which templates give it markup of their own; it stays with another title.
    name: str = ""

    def titled(self, title: str) -> ListColumn[Row]:
        """Return the column with another title."""
        return replace(self, title=title)

    def shown(self, row: Row) -> Any:
        """Return what is shown of a row: a text, or a value that each face formats by its type."""
        return self.value(row) if self.show is None else self.show(row)
