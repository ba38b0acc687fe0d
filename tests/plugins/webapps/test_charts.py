"""Plots: round numbers on the axes, and all shapes within the box."""
# ruff: noqa: RUF001 -- minus signs and powers as they are shown

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import isfinite
from xml.etree import ElementTree

import hypothesis.strategies as st
import jinja2
import pytest
from hypothesis import given

from collidium_plugins.webapps import charts
from collidium_plugins.webapps.charts import Datum, Plot, Scale
from collidium_plugins.webapps.rendering import FILTERS

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 1.7e308, -1.7e308, 1.0, 1.0 + 2e-16, 1e-9]
finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EXTREMES)
errors = st.none() | st.floats(0, allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_categories=["C"]), max_size=20)
data = st.builds(Datum, finite, finite, errors, errors, words, st.sampled_from(["", "front"]))
moments = st.datetimes(datetime(1970, 1, 2), datetime(9990, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)


@pytest.fixture(scope="module")
def draw() -> jinja2.Template:
    """The macro that draws, as pages use it."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("collidium_plugins.webapps"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= FILTERS
    source = '{% from "webapps/charts.html" import drawn %}{{ drawn(plot, "p1", title, text) }}'
    return environment.from_string(source)


def labels(scale: Scale) -> list[str]:
    return [tick.label for tick in scale.ticks]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0.13, 0.87], ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0.9012, 0.9031], ["0.9010", "0.9015", "0.9020", "0.9025", "0.9030", "0.9035"]),
        ([-3, 4], ["−4", "−2", "0", "2", "4"]),
        ([0.5], ["0.47", "0.48", "0.49", "0.50", "0.51", "0.52", "0.53"]),
        ([0.0], ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        ([-0.0, 0.0], ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        ([-0.001, 0.001], ["−0.0010", "−0.0005", "0", "0.0005", "0.0010"]),
        ([], ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0, 2_300_000], ["0", "500,000", "1.0×10⁶", "1.5×10⁶", "2.0×10⁶", "2.5×10⁶"]),
    ],
)
def test_numbers_on_an_axis_are_round(values: list[float], wanted: list[str]) -> None:
    assert labels(charts.scale_of_values(values)) == wanted


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([12, 3400], ["10", "100", "1,000", "10,000"]),
        ([0.002, 5], ["0.001", "0.01", "0.1", "1", "10"]),
        ([1, 1e12], ["1", "1,000", "10⁶", "10⁹", "10¹²"]),
    ],
)
def test_values_over_decades_have_a_logarithmic_axis(values: list[float], wanted: list[str]) -> None:
    scale = charts.scale_of_values(values)
    assert scale.logarithmic
    assert labels(scale) == wanted


@pytest.mark.parametrize("values", [[-1, 1000], [0, 1000], [10, 20], [1000, 3000]])
def test_other_values_have_a_linear_axis(values: list[float]) -> None:
    assert not charts.scale_of_values(values).logarithmic


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        (timedelta(0), ["11:30", "12:00", "12:30"]),
        (timedelta(hours=3), ["12:00", "13:00", "14:00", "15:00"]),
        (timedelta(days=3), ["21 Nov", "22 Nov", "23 Nov"]),
        (timedelta(days=40), ["23 Nov", "3 Dec", "13 Dec", "23 Dec"]),
        (timedelta(days=400), ["Jan 2027", "Jul 2027"]),
        (timedelta(days=4000), ["2030", "2035"]),
    ],
)
def test_times_on_an_axis_are_round(span: timedelta, wanted: list[str]) -> None:
    begin = datetime(2026, 11, 20, 12, tzinfo=UTC)
    found = labels(charts.scale_of_times([begin, begin + span]))
    assert set(wanted) <= set(found)
    assert len(found) <= 6


@given(st.lists(data, max_size=8), st.booleans())
def test_plots_of_any_finite_numbers_are_within_the_box(
    draw: jinja2.Template, points: list[Datum], less_x_is_better: bool
) -> None:
    plot = charts.plot(
        points,
        x=("x", charts.scale_of_values([point.x for point in points])),
        y=("y", charts.scale_of_values([point.y for point in points])),
        corners=charts.staircase(points, less_x_is_better=less_x_is_better),
    )
    require_within(plot)
    picture = ElementTree.fromstring(draw.render(plot=plot, title="<T>", text='"&'))  # noqa: S314 -- our own
    assert len(picture.findall(".//{*}circle")) == len(points)


@given(st.lists(moments, min_size=1, max_size=5), st.lists(finite, min_size=1, max_size=5))
def test_plots_of_any_times_are_within_the_box(times: list[datetime], values: list[float]) -> None:
    x = charts.scale_of_times(times)
    points = [Datum(time.timestamp(), value) for time, value in zip(sorted(times), values, strict=False)]
    corners = charts.step_line(points, times[-1].timestamp())
    require_within(
        charts.plot(points, x=("time", x), y=("y", charts.scale_of_values(values)), corners=corners)
    )
    assert len(x.ticks) <= 6


def require_within(plot: Plot) -> None:
    xs = [
        x
        for mark in plot.marks
        for x in (mark.x, *(bar[0] for bar in mark.bars), *(bar[2] for bar in mark.bars))
    ]
    ys = [
        y
        for mark in plot.marks
        for y in (mark.y, *(bar[1] for bar in mark.bars), *(bar[3] for bar in mark.bars))
    ]
    corners = [corner.split(",") for corner in plot.line.split()]
    xs += [tick.at for tick in plot.x_ticks] + [float(x) for x, _ in corners]
    ys += [tick.at for tick in plot.y_ticks] + [float(y) for _, y in corners]
    assert all(isfinite(value) for value in xs + ys)
    assert all(plot.left - 0.1 <= x <= plot.right + 0.1 for x in xs)
    assert all(plot.top - 0.1 <= y <= plot.bottom + 0.1 for y in ys)
    assert 0 < plot.left < plot.width / 2
    assert 1 <= len(plot.y_ticks) <= 9


def test_a_step_line_holds_values_until_the_next() -> None:
    assert charts.step_line([Datum(1, 5), Datum(3, 7)], 9) == [(1, 5), (3, 5), (3, 7), (9, 7)]
    assert charts.step_line([], 9) == []


def test_the_staircase_bounds_the_attained_region() -> None:
    cheap, good = Datum(1, 0.5), Datum(10, 0.9)
    # At a cost between both, the cheap one is what is to be had.
    assert charts.staircase([good, cheap], less_x_is_better=True) == [(1, 0.5), (10, 0.5), (10, 0.9)]
    fast, exact = Datum(10, 0.5), Datum(1, 0.9)
    # Of speeds between both, the fast one is what is to be had.
    assert charts.staircase([fast, exact], less_x_is_better=False) == [(1, 0.9), (1, 0.5), (10, 0.5)]
