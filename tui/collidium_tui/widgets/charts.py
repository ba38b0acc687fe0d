"""Plots that are read by their shape: colour only repeats length and position."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from rich.text import Text
from textual import events
from textual.widgets import DataTable
from textual_plotext import PlotextPlot

from collidium_tui.widgets.text import printable

#: Cells of the number before a bar.
_NUMBER: Final = 10
#: Parts of a cell, in eighths.
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
#: Cells of a chart that its scale and frame take.
_SCALE: Final = 9
_FRAME: Final = 2
#: From here on the scale has no room for all digits.
_MANY: Final = 100_000.0
#: No bar is longer: Plotext cannot draw what is near the largest float.
_MAX_VALUE: Final = Decimal(10) ** 15
#: Bars between two dates below them.
_DATED: Final = 5


def bar_cell(value: Decimal, maximum: Decimal, width: int) -> Text:
    """A number and, in ``width`` cells in all, its bar: as much of what is left as it is of ``maximum``.

    Nothing has no bar, and something has one.
    """
    number = f"{value:{',.3f' if 0 < value < 1 else ',.1f'}}".rjust(_NUMBER) + " "
    room = max(0, width - len(number))
    eighths = 0
    if value > 0 and maximum > 0:
        eighths = max(1, round(room * 8 * min(value, maximum) / maximum)) if room else 0
    whole, rest = divmod(eighths, 8)
    return Text.assemble(number, ("█" * whole + _EIGHTHS[rest], "cyan"), no_wrap=True)


def last_column_width(table: DataTable[Text]) -> int:
    """Cells that the columns before leave in what is seen of the table, a scrollbar at its side."""
    before = sum(column.get_render_width(table) for column in list(table.columns.values())[:-1])
    return table.size.width - before - 2 * table.cell_padding - table.styles.scrollbar_size_vertical


class DailyChart(PlotextPlot):
    """A bar for each day, all of one width; a day with nothing has none."""

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 -- as every widget has it
        super().__init__(id=id)
        self._title = title
        self._days: tuple[str, ...] = ()
        self._values: tuple[float, ...] = ()

    def show(self, days: Sequence[str], values: Sequence[Decimal]) -> None:
        """Draw these: days as ``YYYY-MM-DD``; where there is no room for all, the latest."""
        self._days = tuple(printable(day, single_line=True) for day in days)
        self._values = tuple(float(min(max(value, Decimal(0)), _MAX_VALUE)) for value in values)
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        """Into what Plotext draws from: places in half cells, so that all bars have the same width."""
        self.plt.clear_data()
        room = max(0, self.size.width - _SCALE - _FRAME)
        names, values = self._days[-room:], self._values[-room:]
        days = len(names)
        if days and room:
            apart = 2 * max(1, room // days)
            thick = max(1, apart - 2)
            centres = [apart * day + (thick - 1) / 2 for day in range(days)]
            self.plt.bar(centres, list(values), width=(thick - 1) / apart, marker="hd")
            self.plt.xlim(0, 2 * room - 1)
            dated = range(0, days, _DATED)
            self.plt.xticks([centres[day] for day in dated], [names[day][5:10] for day in dated])
            self._scale(max(values) or 1.0)
            self.plt.title(self._title if any(values) else f"{self._title}: none")
        self.refresh()

    def _scale(self, top: float) -> None:
        marks = [0.0, top / 2, top]
        form = ",.1f" if top < _MANY else ".2e"
        self.plt.ylim(0, top)
        self.plt.yticks(marks, [f"{mark:{form}}".rjust(_SCALE) for mark in marks])
