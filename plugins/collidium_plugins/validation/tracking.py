"""The quantities of the tracker: efficiencies, residuals and pulls of tracks, residuals of hits, the field.

Definitions are those of ACTS and of the production of the hosted datasets: a track is matched to the particle
with at least half of its hits, or else is a fake; the denominator of efficiencies is
:attr:`EventBlock.findable`.

Residuals of hits are compared without their tails, which are counted: 177 of 71,570 pixel hits make half of
the sum of squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.validation.events import EventBlock, MissingColumn
from collidium_plugins.validation.histograms import ETA_LABEL, PT_LABEL, Kind, Quantity, one_number

Array = npt.NDArray[Any]

_ETA: Final = np.round(np.linspace(-3, 3, 31), 6)
_COARSE_ETA: Final = np.round(np.linspace(-3, 3, 13), 6)
#: GeV.
_PT: Final = np.array([1, 2.5, 5, 7.5, 10, 20, 30, 100])


#: η and pT of the entries of a quantity.
_Of = tuple[Callable[[EventBlock], Array], Callable[[EventBlock], Array]]
_FINDABLE: Final[_Of] = (lambda block: block.eta[block.findable], lambda block: block.pt[block.findable])
_MEASURED: Final[_Of] = (
    lambda block: block.eta[block.measured[1]],
    lambda block: block.pt[block.measured[1]],
)
_TRACKS: Final[_Of] = (lambda block: block.track_eta, lambda block: block.track_pt)


def _by_eta_and_pt(
    name: str,
    title: str,
    y: str,
    kind: Kind,
    of: _Of,
    value: Callable[[EventBlock], Array],
    *,
    eta: Array = _COARSE_ETA,
    spread: Array | None = None,
) -> Iterator[Quantity]:
    """Yield a quantity in bins of η, with edges ``eta``, and in bins of pT."""
    of_eta, of_pt = of

    def by_eta(block: EventBlock) -> tuple[Array, ...]:
        return of_eta(block), value(block)

    def by_pt(block: EventBlock) -> tuple[Array, ...]:
        return of_pt(block), value(block)

    yield Quantity(f"{name}_eta", title, ETA_LABEL, y, eta, kind, by_eta, spread)
    yield Quantity(f"{name}_pt", title, PT_LABEL, y, _PT, kind, by_pt, spread, log="x")


def _found(block: EventBlock) -> Array:
    findable = block.findable
    return block.found[findable]


def _fake(block: EventBlock) -> Array:
    return block.match < 0


def _rates() -> Iterator[Quantity]:
    title = "Tracking efficiency"
    yield one_number("efficiency", title, "fraction", _found)
    yield from _by_eta_and_pt("efficiency", title, "efficiency", "fraction", _FINDABLE, _found, eta=_ETA)
    yield from _by_eta_and_pt("fakes", "Fake tracks", "fake rate", "fraction", _TRACKS, _fake)
    title, y = "Duplicate tracks", "duplicate rate"
    yield from _by_eta_and_pt("duplicates", title, y, "fraction", _TRACKS, lambda block: block.duplicate)
    title, y = "Measurements on a track", "measurements"
    yield from _by_eta_and_pt(
        "measurements",
        title,
        y,
        "mean",
        _TRACKS,
        lambda block: block.inner_lengths("tracks.hit_ids"),
        eta=_ETA,
    )


def _wrapped(angle: Array) -> Array:
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi


def _true(block: EventBlock, name: str, particle: Array) -> Array:
    if name in {"d0", "z0"}:
        return block[f"particles.perigee_{name}"][particle]
    px, py, pz = (block[f"particles.p{axis}"][particle].astype(np.float64) for axis in "xyz")
    if name == "phi":
        return np.arctan2(py, px)
    if name == "theta":
        return np.arctan2(np.hypot(px, py), pz)
    return block["particles.charge"][particle] / np.sqrt(px**2 + py**2 + pz**2)


def _residual(block: EventBlock, name: str) -> Array:
    """Return measured minus true parameters of the tracks of :attr:`EventBlock.measured`; mm, rad, 1/GeV."""
    track, particle = block.measured
    if name == "pt":
        return block.track_pt[track] / block.pt[particle] - 1
    difference = block[f"tracks.{name}"][track].astype(np.float64) - _true(block, name, particle)
    return _wrapped(difference) if name == "phi" else difference


def _pull(block: EventBlock, name: str) -> Array:
    track, particle = block.measured
    pull = _residual(block, name) / np.sqrt(_variance(block, name)[track])
    return np.where(np.abs(block["particles.pdg_id"][particle]) == 11, np.nan, pull)


#: Indices of the variances in the lower triangle, row by row, of the covariance of five parameters.
_VARIANCES: Final = {"d0": 0, "z0": 2, "phi": 5, "theta": 9, "qop": 14}
_ENTRIES: Final = 15


def _variance(block: EventBlock, name: str) -> Array:
    lengths = block.inner_lengths("tracks.covariance")
    if np.any(lengths != _ENTRIES):
        raise MissingColumn(f"no {_ENTRIES} entries in each covariance of table tracks")
    return block["tracks.covariance"].reshape(-1, _ENTRIES)[:, _VARIANCES[name]]


#: Parameter -> name in titles, unit, factor to that unit, and the largest residual in it.
_PARAMETERS: Final = {
    "d0": ("d0", "µm", 1e3, 1000.0),
    "z0": ("z0", "µm", 1e3, 5000.0),
    "phi": ("φ", "mrad", 1e3, 20.0),
    "theta": ("θ", "mrad", 1e3, 20.0),
    "pt": ("pT", "%", 1e2, 20.0),
}


def _residuals() -> Iterator[Quantity]:
    for name, (label, unit, factor, widest) in _PARAMETERS.items():
        spread = np.linspace(-widest, widest, 2001)

        def value(block: EventBlock, name: str = name, factor: float = factor) -> Array:
            return factor * _residual(block, name)

        title, y = f"Resolution of {label} (half of the central 68%)", f"resolution ({unit})"
        yield from _by_eta_and_pt(f"resolution_{name}", title, y, "width", _MEASURED, value, spread=spread)
        title, y = f"Bias of {label} (median residual)", f"bias ({unit})"
        yield from _by_eta_and_pt(f"bias_{name}", title, y, "median", _MEASURED, value, spread=spread)
    for name, label in (("d0", "d0"), ("z0", "z0"), ("phi", "φ"), ("theta", "θ"), ("qop", "q/p")):

        def pull(block: EventBlock, name: str = name) -> Array:
            return _pull(block, name)

        title, spread = f"Pull width of {label}, without electrons", np.linspace(-10, 10, 2001)
        yield from _by_eta_and_pt(f"pull_{name}", title, "width", "width", _MEASURED, pull, spread=spread)


# -- hits and the field ----------------------------------------------------------------------------------


def _field(block: EventBlock) -> tuple[Array, ...]:
    chosen, field = block.fields
    return block.eta[chosen], field


#: Maximum residual of hits that are not tails, about five of the largest standard deviations, µm; by axis,
#: for pixels and strips.
_TAILS: Final = {"phi": (75.0, 110.0), "along": (75.0, 750.0)}
#: Maximum squared distance over variance of hits that are not tails.
_FAR: Final = 25.0


def _hit_residual(block: EventBlock, axis: str) -> tuple[Array, ...]:
    """Return measured minus true positions of hits, µm: in rφ, or in z (barrels) and r (endcaps)."""
    at, true = (
        {name: block[f"tracker_hits.{prefix}{name}"].astype(np.float64) for name in "xyz"}
        for prefix in ("", "true_")
    )
    code = block["tracker_hits.detector"]
    radius, true_radius = (np.hypot(one["x"], one["y"]) for one in (at, true))
    if axis == "phi":
        angle = np.arctan2(at["y"], at["x"]) - np.arctan2(true["y"], true["x"])
        residual = 1000 * true_radius * _wrapped(angle)
    else:
        residual = 1000 * np.where(code % 3 == 1, at["z"] - true["z"], radius - true_radius)
    return code, np.where(np.abs(residual) < np.where(code < 3, *_TAILS[axis]), residual, np.nan)


def _hit_chi2(block: EventBlock) -> tuple[Array, ...]:
    """Return the squared distance of hits from true crossings over its variance."""
    square = sum(
        (block[f"tracker_hits.{axis}"].astype(np.float64) - block[f"tracker_hits.true_{axis}"]) ** 2
        for axis in "xyz"
    )
    variance = block["measurements.var_x"].astype(np.float64) + block["measurements.var_y"]
    return block["tracker_hits.detector"], np.asarray(square / variance)


def _near_hit_chi2(block: EventBlock) -> tuple[Array, ...]:
    code, chi2 = _hit_chi2(block)
    return code, np.where(chi2 < _FAR, chi2, np.nan)


def _hit_tails(block: EventBlock) -> tuple[Array, ...]:
    code, chi2 = _hit_chi2(block)
    return code, chi2 >= _FAR


#: By the code of the detector: negative endcap, barrel, positive endcap. Long strips measure one coordinate.
_SYSTEMS: Final = tuple(f"{system} {side}" for system in ("pixels", "short") for side in "-0+")
_SYSTEM_BINS: Final = np.linspace(-0.5, 5.5, 7)
_HITS: Final = (
    Quantity(
        "field",
        "Magnetic field, from circles through hits (0.999 < pT < 8 GeV)",
        ETA_LABEL,
        "B (T)",
        np.round(np.linspace(-2.5, 2.5, 6), 6),
        "median",
        _field,
        np.linspace(0.5, 6, 1101),
    ),
    *(
        Quantity(
            f"hit_residual_{axis}",
            f"Standard deviation of hits from true crossings {title}",
            "detector",
            "deviation (µm)",
            _SYSTEM_BINS,
            "deviation",
            lambda block, axis=axis: _hit_residual(block, axis),  # type: ignore[misc]  # a default binds it
            labels=_SYSTEMS,
        )
        for axis, title in (("phi", "in rφ"), ("along", "in z (endcaps: r)"))
    ),
    Quantity(
        "hit_chi2",
        "Squared distance of hits from true crossings over its variance",
        "detector",
        "mean",
        _SYSTEM_BINS,
        "mean",
        _near_hit_chi2,
        labels=_SYSTEMS,
    ),
    Quantity(
        "hit_tails",
        "Hits further than five standard deviations from true crossings",
        "detector",
        "fraction",
        _SYSTEM_BINS,
        "fraction",
        _hit_tails,
        labels=_SYSTEMS,
    ),
)


QUANTITIES: Final[tuple[Quantity, ...]] = (*_rates(), *_residuals(), *_HITS)
