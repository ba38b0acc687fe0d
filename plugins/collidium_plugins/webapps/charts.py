"""Geometry of plots in a box: scales of axes with their ticks, lines, and points with error bars.

``templates/webapps/charts.html`` draws it and escapes all text. For any finite input, all shapes are within
the box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, inf, log10
from typing import Final

from collidium.presentation.quantities import power_of_ten

#: Values beyond these are drawn at the edge.
_LARGEST: Final = 1e300
_SMALLEST: Final = 1e-290
#: Relative difference below which values are equal.
_RESOLUTION: Final = 1e-9
#: Minimum number of decades for a logarithmic scale.
_DECADES: Final = 1.5
#: Approximate number of intervals of numbers; maximum numbers for times and days, and for months.
_INTERVALS, _TIMES, _LONG_TIMES = 5, 5, 4

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
#: Seconds between ticks, and their format.
_STEPS: Final = (
    *((minutes * _MINUTE, "%H:%M") for minutes in (1, 5, 15, 30)),
    *((hours * _HOUR, "%H:%M") for hours in (1, 3, 6, 12)),
    *((days * _DAY, "%-d %b") for days in (1, 2, 5, 10, 20)),
)
_MONTHS: Final = (1, 3, 6, 12, 24, 60, 120, 600, 1200, 6000, 12000, 60000)
#: Size of the view box of a plot; a unit is about a pixel.
WIDTH: Final = 360.0
HEIGHT: Final = 250.0
#: Margins: half a label at the right, the name of the y axis above, labels below.
_RIGHT, _TOP, _BOTTOM = 30.0, 34.0, 46.0
#: Width of a character of a label, and gap between labels and axis.
_CHARACTER, _GAP = 7.6, 12.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, which are exponents of ten if it is logarithmic."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    logarithmic: bool = False

    def fraction(self, value: float) -> float:
        """The position of a value on the axis, clipped to 0 to 1."""
        if self.logarithmic:
            value = log10(value) if value > 0 else -inf
        return min(max((_within(value) - self.low) / (self.high - self.low), 0.0), 1.0)


def scale_of_values(values: Sequence[float]) -> Scale:
    """A scale for finite numbers: logarithmic if they are positive and span :data:`_DECADES`."""
    positive = bool(values) and min(values) > 0
    if positive and log10(max(values)) - log10(min(values)) >= _DECADES:
        return logarithmic_scale(values)
    return linear_scale(values)


def linear_scale(values: Sequence[float]) -> Scale:
    """A linear scale between round numbers."""
    low, high = _ends(values)
    step = _round_up((high - low) / _INTERVALS)
    first, last = floor(low / step), ceil(high / step)
    ticks = tuple(Tick(number * step, _label(number * step, step)) for number in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def logarithmic_scale(values: Sequence[float]) -> Scale:
    """A logarithmic scale between powers of ten."""
    first = floor(log10(max(min(values), _SMALLEST)))
    last = max(ceil(log10(_within(max(values)))), first + 1)
    stride = ceil((last - first) / _INTERVALS)
    powers = range(first, last + 1, stride)
    return Scale(first, last, tuple(Tick(10.0**power, _power(power)) for power in powers), logarithmic=True)


def scale_of_times(times: Sequence[datetime]) -> Scale:
    """A scale for times as seconds since 1970, with ticks in UTC."""
    begin, end = min(times), max(times)
    if end - begin < timedelta(minutes=1):
        begin, end = begin - timedelta(minutes=30), end + timedelta(minutes=30)
    low, high = begin.timestamp(), end.timestamp()
    margin = (high - low) / 40
    low, high = low - margin, high + margin
    return Scale(low, high, tuple(_time_ticks(low, high)))


# -- numbers --------------------------------------------------------------------------------------------


def _within(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of the values, widened if it is empty; below 0 only if a value is."""
    if not values:
        return 0.0, 1.0
    low, high = _within(min(values)), _within(max(values))
    largest = max(abs(low), abs(high))
    if high - low > max(largest * _RESOLUTION, _SMALLEST):
        return low, high
    margin = largest / 20 if largest > _SMALLEST * 1e10 else 0.5
    return (max(low - margin, 0.0) if low >= 0 else low - margin), high + margin


def _round_up(step: float) -> float:
    """The next of 1, 2, 5 and 10 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= step * (1 - _RESOLUTION))


def _label(value: float, step: float) -> str:
    """Format a number with the digits that the step requires."""
    decimals = max(0, -floor(log10(step) + _RESOLUTION))
    if value == 0:
        return "0"
    if abs(value) < 1e6 and decimals <= 9:
        return f"{value:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")
    power = floor(log10(abs(value)))
    digits = max(0, power - floor(log10(step) + _RESOLUTION))
    mantissa = f"{value / 10.0**power:.{min(digits, 9)}f}".replace("-", "\N{MINUS SIGN}")
    return f"{mantissa}\N{MULTIPLICATION SIGN}{_power(power, always=True)}"


def _power(power: int, *, always: bool = False) -> str:
    """Format a power of ten; as a plain number from 0.001 to 10,000 unless ``always``."""
    if not always and -3 <= power <= 4:
        return f"{10.0**power:,.{max(0, -power)}f}"
    return power_of_ten(power)


# -- times ----------------------------------------------------------------------------------------------


def _time_ticks(low: float, high: float) -> list[Tick]:
    for step, form in _STEPS:
        if (high - low) / step <= _TIMES:
            numbers = range(ceil(low / step), floor(high / step) + 1)
            return [Tick(number * step, _moment(number * step).strftime(form)) for number in numbers]
    span = (high - low) / (30 * _DAY)
    step = next((months for months in _MONTHS if span / months <= _LONG_TIMES), _MONTHS[-1])
    form = "%b %Y" if step < 12 else "%Y"
    ticks = []
    begin = _moment(low)
    month = ceil((begin.year * 12 + begin.month - 1) / step) * step
    while (
        month // 12 <= 9999
        and (at := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)).timestamp() <= high
    ):
        if at.timestamp() >= low:
            ticks.append(Tick(at.timestamp(), at.strftime(form)))
        month += step
    return ticks


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


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
