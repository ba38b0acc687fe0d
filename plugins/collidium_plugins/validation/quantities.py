"""What is validated: each quantity is one entry, with its bins and how a block of events fills it.

Definitions are those of ACTS and of the production of the hosted datasets: a track is of the particle that at
least half of its hits are of, and a fake without; the efficiency's denominator is :attr:`Block.findable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.datasets.schemas import ECAL_CODE, HCAL_CODE
from collidium_plugins.validation.events import Block, MissingColumn
from collidium_plugins.validation.histograms import Kind, Quantity

Array = npt.NDArray[Any]
Fill = Callable[[Block], tuple[Array, ...]]

_ETA: Final = np.round(np.linspace(-3, 3, 31), 6)
_COARSE_ETA: Final = np.round(np.linspace(-3, 3, 13), 6)
#: GeV.
_PT: Final = np.array([1, 2.5, 5, 7.5, 10, 20, 30, 100])
_SPECTRUM_PT: Final = np.geomspace(0.05, 1000, 44)
#: GeV: photons of about 5, 10, 20, 50 and 100 have a reference, those between have none.
_PHOTONS: Final = np.array([4.5, 5.5, 9, 11, 18, 22, 45, 55, 90, 110])
#: GeV: around the points of production's figure for pions.
_PIONS: Final = np.round(0.4781 * 1.76 ** (np.arange(11) - 0.5), 4).astype(np.float64)
_ONE: Final = np.array([-0.5, 0.5])
_ETA_LABEL, _PT_LABEL = "η", "pT (GeV)"


def _per_event(name: str, title: str, count: Callable[[Block], Array]) -> Quantity:
    """The mean over events of a number that each has."""

    def fill(block: Block) -> tuple[Array, ...]:
        return np.zeros(block.events), count(block)

    return Quantity(f"{name}_per_event", f"{title} per event", "", "", _ONE, "mean", fill)


def _listed(column: str) -> Callable[[Block], Array]:
    return lambda block: block.lengths(column)


def _counted(block: Block, events: Array) -> Array:
    return np.asarray(np.bincount(events, minlength=block.events))


def _contributions(block: Block) -> Array:
    lengths = block.inner_lengths("calo_hits.contrib_energies")
    return np.bincount(block.event("calo_hits"), lengths, block.events)


def _collisions(block: Block) -> Array:
    event, number = block.event("particles"), block["particles.vertex_primary"].astype(np.int64)
    return _counted(block, np.unique(np.stack([event, number]), axis=1)[0])


def _final_charged(block: Block) -> Array:
    return np.asarray(block.final & (block["particles.charge"] != 0))


_MULTIPLICITIES: Final = (
    _per_event("collisions", "Collisions", _collisions),
    _per_event("particles", "Particles", _listed("particles.px")),
    _per_event(
        "charged",
        "Charged particles of the generator within |η| < 3",
        lambda block: _counted(
            block, block.event("particles")[_final_charged(block) & (np.abs(block.eta) < 3)]
        ),
    ),
    _per_event("hits", "Tracker hits", _listed("tracker_hits.x")),
    _per_event("cells", "Calorimeter cells", _listed("calo_hits.x")),
    _per_event("contributions", "Contributions to cells", _contributions),
    _per_event("tracks", "Tracks", _listed("tracks.d0")),
)


# -- generator -------------------------------------------------------------------------------------------


def _vertices(axis: str) -> Callable[[Block], tuple[Array, ...]]:
    """Where collisions are, in mm or ns: the place of their first particle that was not made later."""

    def fill(block: Block) -> tuple[Array, ...]:
        made_there = np.flatnonzero(block["particles.primary"].astype(bool) & (block.parent < 0))
        event, number = block.event("particles"), block["particles.vertex_primary"].astype(np.int64)
        pairs = np.stack([event[made_there], number[made_there]])
        first = made_there[np.unique(pairs, axis=1, return_index=True)[1]]
        return np.zeros(len(first)), block[f"particles.{axis}"][first]

    return fill


def _width_of_vertices(axis: str, title: str) -> Quantity:
    title = f"Standard deviation of collisions in {title}"
    return Quantity(f"vertex_{axis}", title, "", "", _ONE, "deviation", _vertices(axis))


_GENERATOR: Final = (
    Quantity(
        "generator_pt",
        "Charged particles of the generator",
        _PT_LABEL,
        "per event",
        _SPECTRUM_PT,
        "spectrum",
        lambda block: (block.pt[_final_charged(block)],),
        log="xy",
    ),
    Quantity(
        "generator_eta",
        "Charged particles of the generator",
        _ETA_LABEL,
        "per event",
        np.linspace(-6, 6, 49),
        "spectrum",
        lambda block: (block.eta[_final_charged(block)],),
    ),
    Quantity(
        "vertex_vz_spectrum",
        "Vertices of charged particles",
        "z (mm)",
        "per event",
        np.linspace(-250, 250, 51),
        "spectrum",
        lambda block: (block["particles.vz"][_final_charged(block)],),
    ),
    _width_of_vertices("vx", "x (mm)"),
    _width_of_vertices("vy", "y (mm)"),
    _width_of_vertices("vz", "z (mm)"),
    _width_of_vertices("time", "time (ns)"),
)


# -- tracks ----------------------------------------------------------------------------------------------


def _efficiency(block: Block, of: Array) -> tuple[Array, ...]:
    chosen = block.findable
    return of[chosen], block.found[chosen]


def _nothing(block: Block) -> Array:
    return np.zeros(len(block["particles.px"]))


_EFFICIENCY: Final = (
    Quantity(
        "efficiency",
        "Efficiency",
        "",
        "",
        _ONE,
        "fraction",
        lambda block: _efficiency(block, _nothing(block)),
    ),
    Quantity(
        "efficiency_eta",
        "Efficiency",
        _ETA_LABEL,
        "efficiency",
        _ETA,
        "fraction",
        lambda block: _efficiency(block, block.eta),
    ),
    Quantity(
        "efficiency_pt",
        "Efficiency",
        _PT_LABEL,
        "efficiency",
        _PT,
        "fraction",
        lambda block: _efficiency(block, block.pt),
        log="x",
    ),
    Quantity(
        "fakes_eta",
        "Tracks of no particle",
        _ETA_LABEL,
        "fake rate",
        _COARSE_ETA,
        "fraction",
        lambda block: (block.track_eta, block.match < 0),
    ),
    Quantity(
        "fakes_pt",
        "Tracks of no particle",
        _PT_LABEL,
        "fake rate",
        _PT,
        "fraction",
        lambda block: (block.track_pt, block.match < 0),
        log="x",
    ),
    Quantity(
        "duplicates_eta",
        "Further tracks of a particle",
        _ETA_LABEL,
        "duplicate rate",
        _COARSE_ETA,
        "fraction",
        lambda block: (block.track_eta, block.duplicate),
    ),
    Quantity(
        "duplicates_pt",
        "Further tracks of a particle",
        _PT_LABEL,
        "duplicate rate",
        _PT,
        "fraction",
        lambda block: (block.track_pt, block.duplicate),
        log="x",
    ),
    Quantity(
        "measurements_eta",
        "Measurements of a track",
        _ETA_LABEL,
        "measurements",
        _ETA,
        "mean",
        lambda block: (block.track_eta, block.inner_lengths("tracks.hit_ids")),
    ),
    Quantity(
        "measurements_pt",
        "Measurements of a track",
        _PT_LABEL,
        "measurements",
        _PT,
        "mean",
        lambda block: (block.track_pt, block.inner_lengths("tracks.hit_ids")),
        log="x",
    ),
)


def _wrapped(angle: Array) -> Array:
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi


def _true(block: Block, name: str, particle: Array) -> Array:
    if name in {"d0", "z0"}:
        return block[f"particles.perigee_{name}"][particle]
    px, py, pz = (block[f"particles.p{axis}"][particle].astype(np.float64) for axis in "xyz")
    if name == "phi":
        return np.arctan2(py, px)
    if name == "theta":
        return np.arctan2(np.hypot(px, py), pz)
    return block["particles.charge"][particle] / np.sqrt(px**2 + py**2 + pz**2)


def _residual(block: Block, name: str) -> Array:
    """Measured less true, of the tracks of :attr:`Block.measured`; mm, rad, 1/GeV."""
    track, particle = block.measured
    if name == "pt":
        return block.track_pt[track] / block.pt[particle] - 1
    difference = block[f"tracks.{name}"][track].astype(np.float64) - _true(block, name, particle)
    return _wrapped(difference) if name == "phi" else difference


def _pull(block: Block, name: str) -> Array:
    track, particle = block.measured
    pull = _residual(block, name) / np.sqrt(_variance(block, name)[track])
    return np.where(np.abs(block["particles.pdg_id"][particle]) == 11, np.nan, pull)


#: Places of the variances in the lower triangle, row by row, of the covariance of five parameters.
_VARIANCES: Final = {"d0": 0, "z0": 2, "phi": 5, "theta": 9, "qop": 14}
_ENTRIES: Final = 15


def _variance(block: Block, name: str) -> Array:
    lengths = block.inner_lengths("tracks.covariance")
    if np.any(lengths != _ENTRIES):
        raise MissingColumn(f"no {_ENTRIES} entries in each covariance of table tracks")
    return block["tracks.covariance"].reshape(-1, _ENTRIES)[:, _VARIANCES[name]]


def _tracks(
    name: str, title: str, y: str, kind: Kind, spread: Array, value: Callable[[Block], Array]
) -> Iterator[Quantity]:
    """A number of each measured track against its particle's η and pT."""

    def by_eta(block: Block) -> tuple[Array, ...]:
        return block.eta[block.measured[1]], value(block)

    def by_pt(block: Block) -> tuple[Array, ...]:
        return block.pt[block.measured[1]], value(block)

    yield Quantity(f"{name}_eta", title, _ETA_LABEL, y, _COARSE_ETA, kind, by_eta, spread)
    yield Quantity(f"{name}_pt", title, _PT_LABEL, y, _PT, kind, by_pt, spread, log="x")


#: Parameter -> name in titles, unit, units in those of the table, and the largest residual, in these units.
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

        def value(block: Block, name: str = name, factor: float = factor) -> Array:
            return factor * _residual(block, name)

        what = "relative to the true one" if name == "pt" else "less the true one"
        yield from _tracks(
            f"resolution_{name}", f"Width of {label} {what}", f"width ({unit})", "width", spread, value
        )
        yield from _tracks(
            f"bias_{name}", f"Median of {label} {what}", f"median ({unit})", "median", spread, value
        )
    for name in ("d0", "z0", "phi", "theta", "qop"):

        def pull(block: Block, name: str = name) -> Array:
            return _pull(block, name)

        spread = np.linspace(-10, 10, 2001)
        yield from _tracks(
            f"pull_{name}", f"Width of the pull of {name}, without electrons", "width", "width", spread, pull
        )


# -- hits and the field ----------------------------------------------------------------------------------


def _field(block: Block) -> tuple[Array, ...]:
    chosen, field = block.fields
    return block.eta[chosen], field


def _hit_residual(block: Block, axis: str) -> tuple[Array, ...]:
    """Measured less true place of hits, µm: around the beams, or along z (barrels) and r (end caps)."""
    at, true = (
        {name: block[f"tracker_hits.{prefix}{name}"].astype(np.float64) for name in "xyz"}
        for prefix in ("", "true_")
    )
    code = block["tracker_hits.detector"]
    radius, true_radius = (np.hypot(one["x"], one["y"]) for one in (at, true))
    if axis == "phi":
        angle = np.arctan2(at["y"], at["x"]) - np.arctan2(true["y"], true["x"])
        return code, 1000 * true_radius * _wrapped(angle)
    return code, 1000 * np.where(code % 3 == 1, at["z"] - true["z"], radius - true_radius)


def _hit_chi2(block: Block) -> tuple[Array, ...]:
    """The square of the distance of hits from true crossings, over its variance."""
    square = sum(
        (block[f"tracker_hits.{axis}"].astype(np.float64) - block[f"tracker_hits.true_{axis}"]) ** 2
        for axis in "xyz"
    )
    variance = block["measurements.var_x"].astype(np.float64) + block["measurements.var_y"]
    return block["tracker_hits.detector"], np.asarray(square / variance)


_SYSTEMS: Final = tuple(f"{system} {side}" for system in ("pixels", "strips") for side in "-0+")
_HITS: Final = (
    Quantity(
        "field",
        "Field from circles through the hits of particles below 8 GeV",
        _ETA_LABEL,
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
            "",
            "deviation (µm)",
            np.linspace(-0.5, 5.5, 7),
            "deviation",
            lambda block, axis=axis: _hit_residual(block, axis),  # type: ignore[misc]  # a default binds it
            labels=_SYSTEMS,
        )
        for axis, title in (("phi", "around the beams"), ("along", "along z, in end caps r"))
    ),
    Quantity(
        "hit_chi2",
        "Square of hits less true crossings over its variance",
        "",
        "mean",
        np.linspace(-0.5, 5.5, 7),
        "mean",
        _hit_chi2,
        labels=_SYSTEMS,
    ),
)


# -- calorimeters ----------------------------------------------------------------------------------------


def _cells(first_code: int, block: Block) -> Array:
    """Energy of the cells of a calorimeter, MeV."""
    code = block["calo_hits.detector"]
    return 1000 * block["calo_hits.total_energy"][(code >= first_code) & (code < first_code + 3)]


def _cell_quantities() -> Iterator[Quantity]:
    for name, code, threshold in (("ECal", ECAL_CODE, 0.05), ("HCal", HCAL_CODE, 0.25)):

        def spectrum(block: Block, code: int = code) -> tuple[Array, ...]:
            return (_cells(code, block),)

        def below(block: Block, code: int = code, threshold: float = threshold) -> tuple[Array, ...]:
            cells = _cells(code, block)
            return np.zeros(len(cells)), cells < 0.999 * threshold

        def near(block: Block, code: int = code, threshold: float = threshold) -> tuple[Array, ...]:
            cells = _cells(code, block)
            return np.zeros(len(cells)), (cells >= 0.999 * threshold) & (cells < 2 * threshold)

        low, title = name.lower(), f"Energy of {name} cells"
        label, edges = "energy in active layers (MeV)", np.geomspace(0.01, 1000, 101)
        yield Quantity(f"{low}_cells", title, label, "cells per event", edges, "spectrum", spectrum, log="xy")
        end = f"the threshold of {threshold} MeV"
        yield Quantity(f"{low}_below_threshold", f"{name} cells below {end}", "", "", _ONE, "fraction", below)
        title = f"{name} cells from {end} to twice of it"
        yield Quantity(f"{low}_near_threshold", title, "", "", _ONE, "fraction", near)


def _photons(block: Block, *, barrel: bool) -> tuple[Array, ...]:
    """Energy of photons that did not convert, and the part of it that the ECal's active layers see."""
    unconverted = np.ones(len(block.parent), bool)
    unconverted[block.parent[block.parent >= 0]] = False
    eta = np.abs(block.eta)
    inside = eta < 1.0 if barrel else (eta > 1.7) & (eta < 2.7)
    chosen = block.final & unconverted & (block["particles.pdg_id"] == 22) & inside
    chosen &= (block.radius < 100) & (block["particles.energy"] > _PHOTONS[0])
    energy = block["particles.energy"].astype(np.float64)
    return energy[chosen], 100 * block.deposited(calibrated=False)[chosen] / energy[chosen]


def _pions(block: Block) -> tuple[Array, ...]:
    chosen = block.final & (np.abs(block["particles.pdg_id"]) == 211) & (np.abs(block.eta) < 3)
    energy = block["particles.energy"].astype(np.float64)[chosen]
    return block.pt[chosen], np.abs(block.deposited(calibrated=True)[chosen] / energy - 1)


def _ratio(block: Block) -> tuple[Array, ...]:
    """Calibrated energy of all contributions within |η| < 3 over that of the particles, by event."""
    visible = block.final & ~np.isin(np.abs(block["particles.pdg_id"]), (12, 13, 14, 16))
    chosen, event = visible & (np.abs(block.eta) < 3), block.event("particles")
    left = np.bincount(event[chosen], block.deposited(calibrated=True)[chosen], block.events)
    true = np.bincount(event[chosen], block["particles.energy"][chosen], block.events)
    some = true > 0
    return np.zeros(int(some.sum())), left[some] / true[some]


def _calorimeters() -> Iterator[Quantity]:
    yield from _cell_quantities()
    for part in ("barrel", "endcap"):

        def fill(block: Block, barrel: bool = part == "barrel") -> tuple[Array, ...]:
            return _photons(block, barrel=barrel)

        x, spread = "energy (GeV)", np.linspace(0, 6, 1201)
        title = f"Response of the ECal's {part} to photons"
        yield Quantity(
            f"photon_response_{part}", title, x, "seen (%)", _PHOTONS, "median", fill, spread, log="x"
        )
        title = f"Resolution of the ECal's {part} for photons, of what it sees"
        yield Quantity(
            f"photon_width_{part}", title, x, "width (%)", _PHOTONS, "width", fill, spread, log="x"
        )
    title = "Charged pions: mean of |calorimeters less true energy| over true energy"
    yield Quantity("pion_residual_pt", title, _PT_LABEL, "mean", _PIONS, "mean", _pions, log="x")
    title = "Calibrated energy over that of particles within |η| < 3"
    yield Quantity("calorimeter_ratio", title, "", "", _ONE, "mean", _ratio)


QUANTITIES: Final[tuple[Quantity, ...]] = (
    *_MULTIPLICITIES,
    *_GENERATOR,
    *_EFFICIENCY,
    *_residuals(),
    *_HITS,
    *_calorimeters(),
)
