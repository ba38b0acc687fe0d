"""Quantities filled by blocks, and compared with references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collidium_plugins.validation.events import EventBlock
from collidium_plugins.validation.histograms import Accumulator, Histogram, Quantity, Reference, compare

EDGES = np.array([0.0, 1.0, 2.0])


class Entries(EventBlock):
    """A block whose entries are given."""

    def __init__(self, *arrays: Any) -> None:
        super().__init__({}, events=4)
        self.arrays = tuple(map(np.asarray, arrays))


def filled(kind: Any, *blocks: Entries) -> Histogram:
    quantity = Quantity(
        "q",
        "Q",
        "x",
        "y",
        EDGES,
        kind,
        lambda block: block.arrays,
        np.linspace(-10, 10, 2001),
    )
    sums = Accumulator(quantity)
    for block in blocks:
        sums.add(block)
    return sums.result()


def reference(value: float, **settings: Any) -> Reference:
    return Reference(EDGES, np.full(2, value), np.zeros(2), np.ones(2), **settings)


def found(*value: float) -> Histogram:
    return Histogram(EDGES, np.array(value), np.full(2, 0.1), np.full(2, 100.0))


@pytest.fixture
def values() -> Any:
    return np.random.default_rng(5).normal(1.5, 0.5, 4000)


@pytest.mark.parametrize(
    ("kind", "expected"), [("mean", 1.5), ("deviation", 0.5), ("median", 1.5), ("width", 0.5)]
)
def test_blocks_give_what_all_entries_give(kind: Any, expected: float, values: Any) -> None:
    x = np.full(4000, 0.5)
    whole = filled(kind, Entries(x, values))
    parts = filled(kind, Entries(x[:1000], values[:1000]), Entries(x[1000:], values[1000:]))
    assert np.allclose(parts.value[0], whole.value[0], rtol=1e-12)
    assert abs(whole.value[0] - expected) < 4 * whole.error[0]
    assert whole.error[0] < 0.02
    assert np.isnan(whole.value[1])


def test_spectrum_counts_entries_per_event() -> None:
    made = filled("spectrum", Entries([0.5, 0.6, 1.5]), Entries([0.1, 7.0, np.nan]))
    assert made.value.tolist() == [3 / 8, 1 / 8]


def test_fraction_of_one_has_an_error() -> None:
    made = filled("fraction", Entries([0.5] * 9 + [1.5] * 2, [True] * 9 + [True, False]))
    assert made.value.tolist() == [1.0, 0.5]
    assert made.error[0] > 0.05


@pytest.mark.parametrize(
    ("value", "settings", "verdict"),
    [
        (1.0, {}, "agrees"),
        (2.0, {}, "disagrees"),
        (2.0, {"tolerance": 1.0}, "agrees"),
        (2.0, {"tolerance": 0.5, "relative": True}, "disagrees"),
        (2.0, {"side": "below"}, "agrees"),
        (2.0, {"side": "above"}, "disagrees"),
        (0.0, {"side": "below"}, "disagrees"),
    ],
)
def test_verdict_counts_what_exceeds_tolerance(value: float, settings: Any, verdict: str) -> None:
    made = compare(found(value, value), reference(1.0, **settings))
    assert made.verdict == verdict
    assert made.chi2 == pytest.approx(2 * ((value - 1.0) / 0.1) ** 2)


def test_bins_without_value_are_not_compared() -> None:
    assert compare(found(1.0, np.nan), reference(1.0)).bins == 1
    assert compare(found(np.nan, np.nan), reference(1.0)).verdict == "no reference"
    assert compare(found(1.0, 1.0), None).verdict == "no reference"
