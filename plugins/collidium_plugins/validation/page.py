"""A report as one HTML page without scripts: a table of verdicts, and a plot of each quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import numpy as np

from collidium_plugins.validation.histograms import Floats
from collidium_plugins.validation.report import Report, numbers

_WIDTH, _HEIGHT = 360, 240
#: Of the axes within a plot: left, right, top, bottom.
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 350, 28, 198
_COLOURS: Final = {"agrees": "#17803d", "disagrees": "#b42318", "no reference": "#667085"}
_STYLE: Final = """body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:1160px;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:left;border-bottom:1px solid #ddd}
td.n{text-align:right}figure{display:inline-block;margin:.3em}svg{width:360px;height:240px}"""


def html(report: Report) -> str:
    """Return the page of a report."""
    heading = escape(f"Validation of {report['config'] or 'events'}")
    quantities = report["quantities"]
    rows = "".join(_row(name, entry) for name, entry in quantities.items())
    plots = "".join(
        f'<figure id="{escape(name)}">{svg(entry)}</figure>'
        for name, entry in quantities.items()
        if len(entry["value"]) > 1
    )
    missing = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in report["missing"].items())
    summary = ", ".join(f"{count} {verdict}" for verdict, count in report["summary"].items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{heading}</title>'
        f"<style>{_STYLE}</style>"
        f"<h1>{heading}</h1><p>{report['events']} events; {summary}. Points are the events, with standard "
        "errors; lines are the reference, bands its tolerance. A quantity disagrees where what exceeds the "
        "tolerance is significant by four standard deviations; few events agree with nearly anything. "
        "Verdicts show the source of their reference under the pointer.</p><table><tr><th>quantity</th>"
        "<th>value</th><th>reference</th><th>χ² per bin (bins)</th><th>the same beyond tolerance</th>"
        f"<th>verdict</th></tr>{rows}</table>"
        f"{plots}{f'<h2>Not made</h2><ul>{missing}</ul>' if missing else ''}</html>\n"
    )


def cells(entry: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Value and reference (of a single bin), χ² per bin, that beyond the tolerance, and the verdict."""
    reference = entry["reference"]
    value = central = ""
    if len(entry["value"]) == 1 and entry["value"][0] is not None:
        value = f"{entry['value'][0]:.4g} ± {entry['error'][0]:.2g}"
        central = f"{reference['value'][0]:.4g}" if reference else ""
    per_bin, beyond = entry["chi2_per_bin"], entry["chi2_per_bin_beyond_tolerance"]
    chi2 = "" if per_bin is None else f"{per_bin:.3g} ({entry['bins']})"
    return value, central, chi2, "" if beyond is None else f"{beyond:.3g}", entry["verdict"]


def _row(name: str, entry: Mapping[str, Any]) -> str:
    *values, verdict = cells(entry)
    link = f'<a href="#{escape(name)}">{escape(title(entry))}</a>' if len(entry["value"]) > 1 else ""
    columns = "".join(f'<td class="n">{escape(text)}</td>' for text in values)
    source = escape((entry["reference"] or {}).get("source", ""))
    return (
        f"<tr><td>{link or escape(title(entry))}</td>{columns}"
        f'<td style="color:{_COLOURS[verdict]}" title="{source}">{verdict}</td></tr>'
    )


def title(entry: Mapping[str, Any]) -> str:
    """Return the title with what it is a function of."""
    return f"{entry['title']}, by {entry['x']}" if entry["x"] else str(entry["title"])


def svg(entry: Mapping[str, Any]) -> str:
    """Return a plot of a quantity: points with errors, the reference as a line with its tolerance."""
    edges, value, error = (numbers(entry[name]) for name in ("edges", "value", "error"))
    low, central, high = _band(entry["reference"], len(value))
    shown = np.concatenate([value, value - error, value + error, low, central, high])
    x = _Axis.of(edges, _LEFT, _RIGHT, log="x" in entry["log"])
    y = _Axis.of(shown, _BOTTOM, _TOP, log="y" in entry["log"])
    parts = _frame(entry, x, y, edges)
    for place in range(len(value)):
        left, right = x.at(edges[place]), x.at(edges[place + 1])
        if np.isfinite(central[place]):
            top, middle, bottom = (y.at(one[place]) for one in (high, central, low))
            parts.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
                f'fill="#9ec5fe" opacity=".5"/><path d="M{left:.1f} {middle:.1f}H{right:.1f}" '
                'stroke="#1d4ed8"/>'
            )
        if np.isfinite(value[place]) and (value[place] > 0 or not y.log):
            middle = (left + right) / 2
            top, bottom = (y.at(value[place] + sign * np.nan_to_num(error[place])) for sign in (1, -1))
            parts.append(
                f'<path d="M{middle:.1f} {top:.1f}V{bottom:.1f}" stroke="#111"/>'
                f'<circle cx="{middle:.1f}" cy="{y.at(value[place]):.1f}" r="2" fill="#111"/>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="10">{"".join(parts)}</svg>'
    )


def _band(reference: Mapping[str, Any] | None, bins: int) -> tuple[Floats, Floats, Floats]:
    """A reference less its tolerance, itself, and with it."""
    if reference is None:
        nothing = np.full(bins, np.nan)
        return nothing, nothing, nothing
    central, tolerance = numbers(reference["value"]), reference["tolerance"]
    free = numbers(tolerance) if isinstance(tolerance, list) else np.full(bins, tolerance)
    free = free * np.abs(central) if reference["relative"] else free
    return central - free, central, central + free


@dataclass(frozen=True, slots=True)
class _Axis:
    """From numbers (or their logarithms) between two limits to pixels."""

    low: float
    high: float
    first: int
    last: int
    log: bool

    @classmethod
    def of(cls, shown: Floats, first: int, last: int, *, log: bool) -> _Axis:
        """All that is shown fits, with room around it along y."""
        there = shown[np.isfinite(shown) & ((shown > 0) | (not log))]
        there = np.log10(there) if log else there
        low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
        room = 0.05 * (high - low) if first > last else 0.0
        room = room or (0.5 if high == low else 0.0)
        return cls(low - room, high + room, first, last, log)

    def at(self, number: float) -> float:
        scaled = np.log10(max(number, 1e-300)) if self.log else number
        part = np.clip((scaled - self.low) / (self.high - self.low), 0, 1)
        return float(self.first + (self.last - self.first) * part)

    def ticks(self) -> list[float]:
        """Three to seven round numbers, or powers of ten."""
        step = 1.0 if self.log and self.high - self.low > 2 else _round_step((self.high - self.low) / 4)
        places = np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step
        places = places[:: max(1, len(places) // 5)]
        return [float(10.0**place if self.log else round(place, 12)) for place in places]


def _round_step(step: float) -> float:
    size = 10.0 ** np.floor(np.log10(step))
    return float(next(size * factor for factor in (1, 2, 5, 10) if size * factor >= step * 0.999))


def _frame(entry: Mapping[str, Any], x: _Axis, y: _Axis, edges: Floats) -> list[str]:
    """Title, axes, ticks and labels."""
    middle = (_LEFT + _RIGHT) / 2
    parts = [
        f'<rect x="0" y="0" width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>'
        f'<text x="{_WIDTH / 2}" y="14" text-anchor="middle">{escape(entry["title"])}</text>'
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" stroke="#111" fill="none"/>'
        f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(entry["x"])}</text>'
        f'<text transform="translate(12 {(_TOP + _BOTTOM) / 2})rotate(-90)" text-anchor="middle">'
        f"{escape(entry['y'])}</text>"
    ]
    labels = dict(zip((edges[1:] + edges[:-1]) / 2, entry["labels"], strict=False))
    labels = labels or {number: f"{number:.4g}" for number in x.ticks()}
    for number, label in labels.items():
        parts.append(
            f'<path d="M{x.at(number):.1f} {_BOTTOM}v4" stroke="#111"/>'
            f'<text x="{x.at(number):.1f}" y="{_BOTTOM + 15}" text-anchor="middle">{escape(label)}</text>'
        )
    for number in y.ticks():
        parts.append(
            f'<path d="M{_LEFT} {y.at(number):.1f}h-4" stroke="#111"/>'
            f'<text x="{_LEFT - 6}" y="{y.at(number) + 3:.1f}" text-anchor="end">{number + 0.0:.4g}</text>'
        )
    return parts
