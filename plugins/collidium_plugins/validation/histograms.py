"""Declarations of quantities, histograms filled from blocks of events, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from collidium_plugins.validation.events import EventBlock

Floats = npt.NDArray[np.float64]
Kind = Literal["spectrum", "fraction", "mean", "deviation", "median", "width"]

#: Labels of axes.
ETA_LABEL: Final = "η"
PT_LABEL: Final = "pT (GeV)"

#: Minimum number of entries of a bin with a value, by kind.
_MIN_ENTRIES: Final[Mapping[Kind, int]] = {
    "spectrum": 0,
    "fraction": 1,
    "mean": 2,
    "deviation": 20,
    "median": 20,
    "width": 20,
}
#: Standard errors of the median and the width of n Gaussian values, in units of the standard deviation over
#: √n.
_MEDIAN_ERROR, _WIDTH_ERROR = 1.253, 0.962
#: Histograms disagree if χ² exceeds its mean by this many standard deviations.
_SIGNIFICANT: Final = 4.0


@dataclass(frozen=True, slots=True)
class Quantity:
    """Declaration of a histogram.

    Parameters
    ----------
    name, title, x, y
        Unique name; title of the plot; labels of the axes, with units.
    edges
        Edges of the bins of x, ascending.
    kind
        ``"spectrum"``: entries per event; ``"fraction"``: of entries that pass; of y ``"mean"``, standard
        ``"deviation"``, ``"median"`` or ``"width"``, half of the central 68.3% interval.
    fill
        Returns the entries of a block: x, and y (whether the entry passes, for a fraction) except for a
        spectrum.
    spread
        Edges of the bins of y, for the median and the width.
    labels
        Names of the bins, if x is not a number.
    log
        Logarithmic axes: ``"x"``, ``"y"``, ``"xy"`` or empty.
    """

    name: str
    title: str
    x: str
    y: str
    edges: Floats
    kind: Kind
    fill: Callable[[EventBlock], tuple[npt.NDArray[Any], ...]]
    spread: Floats | None = None
    labels: tuple[str, ...] = ()
    log: str = ""


def one_number(name: str, title: str, kind: Kind, of: Callable[[EventBlock], npt.NDArray[Any]]) -> Quantity:
    """Return a quantity with a single bin, whose entries y are those that ``of`` returns."""

    def fill(block: EventBlock) -> tuple[npt.NDArray[Any], ...]:
        entries = of(block)
        return np.zeros(len(entries)), entries

    return Quantity(name, title, "", "", np.array([-0.5, 0.5]), kind, fill)


@dataclass(slots=True)
class Accumulator:
    """Sums of a quantity over blocks of events."""

    quantity: Quantity
    events: int = 0
    #: Number of entries, sum of y and sum of y² in each bin; and numbers of entries by bins of x and y.
    entries: Floats = field(init=False)
    sums: Floats = field(init=False)
    squares: Floats = field(init=False)
    table: Floats = field(init=False)

    def __post_init__(self) -> None:
        bins = len(self.quantity.edges) - 1
        self.entries, self.sums, self.squares = (np.zeros(bins) for _ in range(3))
        self.table = np.zeros((bins, 0 if self.quantity.spread is None else len(self.quantity.spread) + 1))

    def add(self, block: EventBlock) -> None:
        """Add the entries of a block of events. Raises MissingColumn."""
        x, *rest = self.quantity.fill(block)
        place = np.searchsorted(self.quantity.edges, x, side="right") - 1
        good = (place >= 0) & (place < len(self.entries)) & np.isfinite(x)
        y = np.asarray(rest[0], np.float64) if rest else np.ones(len(x))
        good &= np.isfinite(y)
        place, y = place[good], y[good]
        bins = len(self.entries)
        self.events += block.events
        self.entries += np.bincount(place, minlength=bins)
        self.sums += np.bincount(place, y, minlength=bins)
        self.squares += np.bincount(place, y * y, minlength=bins)
        if self.quantity.spread is not None:
            columns = self.table.shape[1]
            flat = place * columns + np.searchsorted(self.quantity.spread, y, side="right")
            self.table += np.bincount(flat, minlength=bins * columns).reshape(bins, columns)

    def result(self) -> Histogram:
        """Return values and standard errors; NaN where a bin has too few entries."""
        n, kind = np.maximum(self.entries, 1), self.quantity.kind
        if kind == "spectrum":
            value, error = self.entries / self.events, np.sqrt(n) / self.events
        elif kind == "fraction":
            value = self.sums / n
            expected = (self.sums + 1) / (self.entries + 2)  # an error of 0 would be one of no entries
            error = np.sqrt(expected * (1 - expected) / n)
        elif kind in ("mean", "deviation"):
            value = self.sums / n
            deviation = np.sqrt(np.maximum(self.squares / n - value**2, 0) * n / np.maximum(n - 1, 1))
            error = deviation / np.sqrt(n)
            if kind == "deviation":
                value, error = deviation, error / np.sqrt(2)
        else:
            low, middle, high = (self._quantile(part) for part in (0.1587, 0.5, 0.8413))
            width = (high - low) / 2
            of_kind = {"median": (middle, _MEDIAN_ERROR), "width": (width, _WIDTH_ERROR)}
            value, factor = of_kind[kind]
            error = factor * width / np.sqrt(n)
        absent = self.entries < _MIN_ENTRIES[kind]
        value, error = (np.where(absent, np.nan, numbers) for numbers in (value, error))
        return Histogram(self.quantity.edges, value, error, self.entries)

    def _quantile(self, part: float) -> Floats:
        """Return the quantile of y in each bin, interpolated linearly between edges."""
        assert self.quantity.spread is not None  # noqa: S101  # a median without it is a mistake in this package
        below = np.cumsum(self.table, axis=1)[:, :-1]
        wanted = part * np.maximum(self.entries, 1)
        pairs = zip(wanted, below, strict=True)
        return np.array([np.interp(one, row, self.quantity.spread) for one, row in pairs])


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Values, standard errors and numbers of entries by bin, shape (bins,); NaN for bins without a value."""

    edges: Floats
    value: Floats
    error: Floats
    entries: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Reference(Histogram):
    """A reference for a histogram.

    Only differences beyond ``tolerance`` count; with ``side`` ``"below"`` or ``"above"`` only those on that
    side of the reference.
    """

    tolerance: float | Floats = 0.0
    #: Whether the tolerance is a fraction of the reference.
    relative: bool = False
    side: Literal["both", "below", "above"] = "both"
    source: str = ""


Verdict = Literal["agrees", "disagrees", "no reference"]


@dataclass(frozen=True, slots=True)
class HistogramComparison:
    """χ² of a histogram and its reference over common bins, and the verdict."""

    chi2: float
    bins: int
    #: χ² of the part of differences beyond the tolerance.
    chi2_beyond: float
    verdict: Verdict


def compare(found: Histogram, reference: Reference | None) -> HistogramComparison:
    """Compare a histogram with its reference.

    They disagree if the χ² of differences beyond the tolerance exceeds n + 4 √(2n) for n bins, which is four
    standard deviations above its mean.
    """
    if reference is None or not _same(found.edges, reference.edges):
        return HistogramComparison(0.0, 0, 0.0, "no reference")
    variance = np.nan_to_num(found.error) ** 2 + np.nan_to_num(reference.error) ** 2
    both = np.isfinite(found.value) & np.isfinite(reference.value) & (variance > 0)
    number = int(both.sum())
    if not number:
        return HistogramComparison(0.0, 0, 0.0, "no reference")
    difference = (found.value - reference.value)[both]
    free = np.broadcast_to(reference.tolerance, both.shape)[both]
    free = free * (np.abs(reference.value[both]) if reference.relative else 1.0)
    beyond = np.sign(difference) * np.maximum(np.abs(difference) - free, 0.0)
    if reference.side != "both":
        wrong = beyond < 0 if reference.side == "below" else beyond > 0
        beyond = np.where(wrong, beyond, 0.0)
    chi2, chi2_beyond = (float((each**2 / variance[both]).sum()) for each in (difference, beyond))
    agrees = chi2_beyond <= number + _SIGNIFICANT * np.sqrt(2.0 * number)
    return HistogramComparison(chi2, number, chi2_beyond, "agrees" if agrees else "disagrees")


def _same(edges: Floats, others: Floats) -> bool:
    return len(edges) == len(others) and bool(np.allclose(edges, others, atol=1e-4))
