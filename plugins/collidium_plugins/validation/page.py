"""Renders a report as an HTML page: a table of verdicts, and an SVG plot of each quantity.

No matplotlib: a page without scripts, and four kinds of plot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, Template

from collidium_plugins.validation.histograms import Floats
from collidium_plugins.validation.report import Report, numbers

#: The axes within a plot of 360 by 240 pixels.
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 350, 28, 198


def html(report: Report) -> str:
    """Return the HTML page of a report."""
    return _template().render(
        heading=f"Validation of {report['config'] or 'events'}",
        report=report,
        plots={name: _plot(entry) for name, entry in report["quantities"].items() if len(entry["value"]) > 1},
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("collidium_plugins.validation", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"cells": cells, "title": title}
    environment.globals |= {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM}
    return environment.get_template("page.html")


def cells(entry: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Return value and reference (for single bins), χ² per bin, χ² beyond the tolerance, and the verdict."""
    reference = entry["reference"]
    value = central = ""
    if len(entry["value"]) == 1 and entry["value"][0] is not None:
        value = f"{entry['value'][0]:.4g} ± {entry['error'][0]:.2g}"
        central = f"{reference['value'][0]:.4g}" if reference else ""
    per_bin, beyond = entry["chi2_per_bin"], entry["chi2_per_bin_beyond_tolerance"]
    chi2 = "" if per_bin is None else f"{per_bin:.3g} ({entry['bins']})"
    return value, central, chi2, "" if beyond is None else f"{beyond:.3g}", entry["verdict"]


def title(entry: Mapping[str, Any]) -> str:
    """Return the title with the label of the x axis."""
    return f"{entry['title']}, by {entry['x']}" if entry["x"] else str(entry["title"])


def _plot(entry: Mapping[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Return pixel positions of points with errors, of the reference with its tolerance, and of ticks."""
    edges, value, error = (numbers(entry[name]) for name in ("edges", "value", "error"))
    low, central, high = _band(entry["reference"], len(value))
    shown = np.concatenate([value, value - error, value + error, low, central, high])
    x = _Axis.of(edges, _LEFT, _RIGHT, log="x" in entry["log"])
    y = _Axis.of(shown, _BOTTOM, _TOP, log="y" in entry["log"])
    bins = list(pairwise(x.at(edge) for edge in edges))
    labels = dict(zip((edges[1:] + edges[:-1]) / 2, entry["labels"], strict=False))
    labels = labels or {number: f"{number:.4g}" for number in x.ticks()}
    return {
        "bands": [
            (*ends, *map(y.at, band))
            for ends, *band in zip(bins, high, central, low, strict=True)
            if np.isfinite(band[1])
        ],
        "points": [
            (round((left + right) / 2, 1), *map(y.at, (one, one + spread, one - spread)))
            for (left, right), one, spread in zip(bins, value, np.nan_to_num(error), strict=True)
            if np.isfinite(one) and (one > 0 or not y.log)
        ],
        "x_ticks": [(x.at(number), label) for number, label in labels.items()],
        "y_ticks": [(y.at(number), f"{number + 0.0:.4g}") for number in y.ticks()],
    }


def _band(reference: Mapping[str, Any] | None, bins: int) -> tuple[Floats, Floats, Floats]:
    """Return the reference minus its tolerance, the reference, and the reference plus its tolerance."""
    if reference is None:
        nothing = np.full(bins, np.nan)
        return nothing, nothing, nothing
    central, tolerance = numbers(reference["value"]), reference["tolerance"]
    free = numbers(tolerance) if isinstance(tolerance, list) else np.full(bins, tolerance)
    free = free * np.abs(central) if reference["relative"] else free
    return central - free, central, central + free


@dataclass(frozen=True, slots=True)
class _Axis:
    """Maps numbers, or their logarithms, to pixels."""

    low: float
    high: float
    first: int
    last: int
    log: bool

    @classmethod
    def of(cls, shown: Floats, first: int, last: int, *, log: bool) -> _Axis:
        """Return an axis that contains all numbers, with margins along y."""
        there = shown[np.isfinite(shown) & ((shown > 0) | (not log))]
        there = np.log10(there) if log else there
        low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
        room = 0.05 * (high - low) if first > last else 0.0
        room = room or (0.5 if high == low else 0.0)
        return cls(low - room, high + room, first, last, log)

    def at(self, number: float) -> float:
        scaled = np.log10(max(number, 1e-300)) if self.log else number
        part = np.clip((scaled - self.low) / (self.high - self.low), 0, 1)
        return round(float(self.first + (self.last - self.first) * part), 1)

    def ticks(self) -> list[float]:
        """Return three to seven round numbers, or powers of ten."""
        step = 1.0 if self.log and self.high - self.low > 2 else _round_step((self.high - self.low) / 4)
        places = np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step
        places = places[:: max(1, len(places) // 5)]
        return [float(10.0**place if self.log else round(place, 12)) for place in places]


def _round_step(step: float) -> float:
    size = 10.0 ** np.floor(np.log10(step))
    return float(next(size * factor for factor in (1, 2, 5, 10) if size * factor >= step * 0.999))
