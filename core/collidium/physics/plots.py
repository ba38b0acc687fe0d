"""Plots of events and results on matplotlib axes. Needs matplotlib, which is not a dependency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from collidium.physics.helix import Helix
from collidium.physics.kinematics import r

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _axes(axes: Axes | None, **names: Any) -> Axes:
    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(layout="constrained").subplots()
    axes.set(**names)
    return axes


def event(
    hits: Any, tracks: Any = None, *, view: str = "xy", radius: float = 1100.0, axes: Axes | None = None
) -> Axes:
    """Draw the hits of one event, and its tracks as helices.

    Parameters
    ----------
    hits
        A table of one event with ``x``, ``y`` and ``z``, mm: ``{name: column[0] for name, column in …}``.
    tracks
        A table of the same event with ``d0``, ``z0``, ``phi``, ``theta`` and ``qop``.
    view
        ``"xy"``, across the beams, or ``"zr"``, along them.
    radius
        Maximum radius to which tracks are drawn, mm.
    axes
        Axes to draw on; default: new axes.
    """
    across = view == "xy"
    axes = _axes(axes, xlabel=f"{view[0]} (mm)", ylabel=f"{view[1]} (mm)")
    if across:
        axes.set_aspect("equal")
    axes.plot(*(hits["x"], hits["y"]) if across else (hits["z"], r(hits)), ".", ms=1, color="0.4")
    if tracks is not None:
        points = Helix.from_tracks(tracks).points(np.linspace(0, 1.5 * radius, 100))
        for x, y, z in points.transpose(0, 2, 1):
            away = np.hypot(x, y)
            inside = np.minimum.accumulate(away < radius)
            axes.plot(*(of[inside] for of in ((x, y) if across else (z, away))), lw=0.8)
    return axes


def efficiency(
    values: npt.ArrayLike,
    found: npt.ArrayLike,
    edges: npt.ArrayLike,
    *,
    axes: Axes | None = None,
    **names: Any,
) -> Axes:
    """Draw an efficiency in bins, with 68% intervals.

    Intervals are Wilson's score intervals (E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209).

    Parameters
    ----------
    values : array_like, shape (particles,)
        Quantity on the x axis, such as pT or η.
    found : array_like of bool, shape (particles,)
        Whether each particle was found.
    edges : array_like, shape (bins + 1,)
        Edges of the bins.
    axes
        Axes to draw on; default: new axes.
    **names
        Properties of the axes, such as ``xlabel`` and ``title``.
    """
    edges = np.asarray(edges, np.float64)
    total, _ = np.histogram(values, edges)
    good, _ = np.histogram(np.asarray(values)[np.asarray(found, bool)], edges)
    there = total > 0
    low, high = wilson(good[there], total[there])
    fraction = good[there] / total[there]
    middle = ((edges[1:] + edges[:-1]) / 2)[there]
    axes = _axes(axes, ylabel="efficiency", ylim=(0, 1.05), **names)
    errors = np.maximum([fraction - low, high - fraction], 0)
    axes.errorbar(middle, fraction, yerr=errors, xerr=np.diff(edges)[there] / 2, fmt=".")
    return axes


def wilson(good: npt.ArrayLike, total: npt.ArrayLike, z: float = 1.0) -> tuple[Any, Any]:
    """Return the limits of Wilson's score intervals of fractions; ``z`` is in standard deviations."""
    good, total = np.asarray(good, np.float64), np.asarray(total, np.float64)
    weight = 1 / (1 + z**2 / total)
    centre = weight * (good + z**2 / 2) / total
    half = weight * z / total * np.sqrt(good * (total - good) / total + z**2 / 4)
    return centre - half, centre + half


def roc(
    scores: npt.ArrayLike, signal: npt.ArrayLike, *, label: str | None = None, axes: Axes | None = None
) -> Axes:
    """Draw background rejection, the inverse of background efficiency, against signal efficiency.

    Parameters
    ----------
    scores : array_like, shape (rows,)
        Higher for signal.
    signal : array_like of bool, shape (rows,)
        Which rows are signal.
    label
        Text in the legend.
    axes
        Axes to draw on; default: new axes.
    """
    scores, signal = np.asarray(scores), np.asarray(signal, bool)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)  # one point for ties
    kept, kept_background = (np.cumsum(of[order])[last] / of.sum() for of in (signal, ~signal))
    seen = kept_background > 0
    axes = _axes(axes, xlabel="signal efficiency", ylabel="background rejection", yscale="log", xlim=(0, 1))
    axes.plot(kept[seen], 1 / kept_background[seen], label=label)
    if label is not None:
        axes.legend()
    return axes


def spectra(
    columns: Mapping[str, npt.ArrayLike], edges: npt.ArrayLike, *, axes: Axes | None = None, **names: Any
) -> Axes:
    """Draw normalised histograms in one plot.

    Parameters
    ----------
    columns
        Values by text in the legend.
    edges : array_like, shape (bins + 1,)
        Edges of the bins.
    axes
        Axes to draw on; default: new axes.
    **names
        Properties of the axes, such as ``xlabel`` and ``yscale``.
    """
    axes = _axes(axes, **{"ylabel": "density", **names})
    for label, values in columns.items():
        density, _ = np.histogram(values, np.asarray(edges, np.float64), density=True)
        axes.stairs(density, edges, label=label)
    axes.legend()
    return axes
