"""Geometry of plots in a box: axes with ticks, lines, and points with error bars.

``templates/webapps/charts.html`` draws it and escapes all text. For any finite input, all shapes are within
the box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from collidium_plugins.webapps.scales import Scale, Tick

#: Size of the view box of a plot; a unit is about a pixel.
WIDTH: Final = 360.0
HEIGHT: Final = 250.0
#: Margins: half a label at the right, the name of the y axis above, labels below.
_RIGHT, _TOP, _BOTTOM = 30.0, 34.0, 46.0
#: Width of a character of a label, and gap between labels and axis.
_CHARACTER, _GAP = 7.6, 12.0


@dataclass(frozen=True, slots=True)
class Datum:
    """A data point, with standard errors if known."""

    x: float
    y: float
    x_error: float | None = None
    y_error: float | None = None
    #: Its description.
    text: str = ""
    #: Its class in the style sheet.
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in the box; ``bars`` are its error bars: x1, y1, x2, y2."""

    x: float
    y: float
    bars: tuple[tuple[float, float, float, float], ...]
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The shapes of a plot."""

    x_name: str
    y_name: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    #: Points of the line; empty for no line.
    line: str
    left: float
    right: float
    top: float
    bottom: float
    width: float = WIDTH
    height: float = HEIGHT


@dataclass(frozen=True, slots=True)
class _Frame:
    """Converts values to positions in the box."""

    x: Scale
    y: Scale
    left: float

    def place(self, x: float, y: float) -> tuple[float, float]:
        return self.across(x), self.up(y)

    def across(self, x: float) -> float:
        return round(self.left + self.x.fraction(x) * (WIDTH - _RIGHT - self.left), 1)

    def up(self, y: float) -> float:
        return round(HEIGHT - _BOTTOM - self.y.fraction(y) * (HEIGHT - _BOTTOM - _TOP), 1)

    def mark(self, datum: Datum) -> Mark:
        x, y = self.place(datum.x, datum.y)
        bars = []
        if datum.y_error:
            bars.append((x, self.up(datum.y - datum.y_error), x, self.up(datum.y + datum.y_error)))
        if datum.x_error:
            bars.append((self.across(datum.x - datum.x_error), y, self.across(datum.x + datum.x_error), y))
        return Mark(x, y, tuple(bars), datum.text, datum.kind)


def plot(
    data: Sequence[Datum],
    *,
    x: tuple[str, Scale],
    y: tuple[str, Scale],
    corners: Iterable[tuple[float, float]] = (),
) -> Plot:
    """Plot points, and a line through ``corners``, on axes with a name and a scale."""
    left = _GAP + _CHARACTER * max((len(tick.label) for tick in y[1].ticks), default=1)
    frame = _Frame(x[1], y[1], left)
    return Plot(
        x_name=x[0],
        y_name=y[0],
        x_ticks=tuple(Tick(frame.across(tick.at), tick.label) for tick in x[1].ticks),
        y_ticks=tuple(Tick(frame.up(tick.at), tick.label) for tick in y[1].ticks),
        marks=tuple(map(frame.mark, data)),
        line=" ".join("{:.1f},{:.1f}".format(*frame.place(*corner)) for corner in corners),
        left=round(left, 1),
        right=WIDTH - _RIGHT,
        top=_TOP,
        bottom=HEIGHT - _BOTTOM,
    )


def step_line(data: Sequence[Datum], until: float) -> list[tuple[float, float]]:
    """Corners of a step function that keeps each value until the next point."""
    corners: list[tuple[float, float]] = []
    for datum in data:
        if corners:
            corners.append((datum.x, corners[-1][1]))
        corners.append((datum.x, datum.y))
    if corners:
        corners.append((max(until, corners[-1][0]), corners[-1][1]))
    return corners


def staircase(front: Iterable[Datum], *, less_x_is_better: bool) -> list[tuple[float, float]]:
    """Corners of the attained region of a Pareto front: the worse ``y`` between two of its points."""
    corners: list[tuple[float, float]] = []
    for datum in sorted(front, key=lambda datum: (datum.x, datum.y)):
        if corners:
            x, y = corners[-1]
            corners.append((datum.x, y) if less_x_is_better else (x, datum.y))
        corners.append((datum.x, datum.y))
    return corners
