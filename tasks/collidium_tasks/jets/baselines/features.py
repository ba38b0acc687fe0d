"""Features for b-tagging from the tracks near each jet: displacement, mass and momentum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from collidium.contracts.tables import list_lengths
from collidium.contracts.task import Tables, UnusableTruth
from collidium.physics import delta_phi

Doubles = npt.NDArray[np.float64]

#: Minimum pT of tracks, GeV, and maximum |d0|, mm: tracks beyond it are mostly from K0S, hyperons and
#: material.
MIN_PT: Final = 0.5
MAX_D0: Final = 3.0
#: Maximum distance of a track from its jet in η and φ.
RADIUS: Final = 0.4
#: Minimum pT (GeV) and maximum |d0| (mm) of tracks for the primary vertex.
_VERTEX_PT: Final = 1.0
_VERTEX_D0: Final = 0.2
#: Assumed position of jets, about the faces of the calorimeters, mm.
_FACE_RADIUS: Final = 1350.0
_FACE_LENGTH: Final = 3300.0
#: Resolution of d0, mm: a constant, and multiple scattering times 1 GeV / (pt √sin θ), added in quadrature.
#: That of z0 is larger by 1 / sin θ. Measured on tracks of the built-in pipeline.
_CONSTANT: Final = 0.020
_SCATTERING: Final = 0.050

_TRACK_COLUMNS: Final = ("d0", "z0", "phi", "theta", "qop")
_JET_COLUMNS: Final = ("pt", "eta", "phi", "mass")


@dataclass(frozen=True, slots=True, eq=False)
class JetTracks:
    """A jet and arrays of its tracks; GeV and mm."""

    jet_pt: float
    jet_eta: float
    jet_mass: float
    pt: Doubles
    eta: Doubles
    phi: Doubles
    #: Distance to the jet in η and φ.
    distance: Doubles
    #: Signed impact parameter significances: positive for tracks that cross the jet's axis in front of the
    #: vertex.
    d0: Doubles
    z0: Doubles
    #: |d0|, mm.
    abs_d0: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class _Tracks:
    """Arrays of the selected tracks of an event; GeV and mm."""

    pt: Doubles
    eta: Doubles
    phi: Doubles
    sine: Doubles
    d0: Doubles
    #: Relative to the primary vertex.
    z0: Doubles
    #: Resolution of d0.
    resolution: Doubles


def jets_of(tables: Tables) -> Iterator[JetTracks]:
    """Yield every jet of the tables ``jets`` and ``tracks``, in the order of table ``jets``."""
    tracks, jets = _lists(tables, "tracks", _TRACK_COLUMNS), _lists(tables, "jets", _JET_COLUMNS)
    for of_tracks, of_jets in zip(tracks, jets, strict=True):
        if len(of_jets[0]):
            yield from _matched(of_jets, *_selected(*of_tracks))


def _selected(d0: Doubles, z0: Doubles, phi: Doubles, theta: Doubles, qop: Doubles) -> tuple[_Tracks, float]:
    """Return the selected tracks, and z of the primary vertex."""
    sine = np.maximum(np.sin(theta), 1e-6)
    pt = sine / np.maximum(np.abs(qop), 1e-9)
    vertex = _vertex(pt, d0, z0)
    chosen = (pt >= MIN_PT) & (np.abs(d0) <= MAX_D0)
    d0, z0, phi, theta, sine, pt = (column[chosen] for column in (d0, z0, phi, theta, sine, pt))
    eta = np.arctanh(np.clip(np.cos(theta), -0.999999, 0.999999))
    resolution = np.hypot(_CONSTANT, _SCATTERING / (pt * np.sqrt(sine)))
    return _Tracks(pt, eta, phi, sine, d0, z0 - vertex, resolution), vertex


def _matched(jets: list[Doubles], tracks: _Tracks, vertex: float) -> Iterator[JetTracks]:
    """Yield every jet with the tracks within RADIUS that are nearest to it."""
    jet_pt, jet_eta, jet_phi, jet_mass = jets
    jet_eta = _eta_from_vertex(vertex, jet_eta)
    d_eta = jet_eta[:, None] - tracks.eta
    d_phi = delta_phi(jet_phi[:, None], tracks.phi)
    distance = np.hypot(d_eta, d_phi)
    nearest = np.argmin(distance, axis=0)
    for jet in range(len(jet_pt)):
        own = np.flatnonzero((nearest == jet) & (distance[jet] < RADIUS))
        d0, z0, resolution = tracks.d0[own], tracks.z0[own], tracks.resolution[own]
        sign_d0 = np.sign(d0 * np.sin(d_phi[jet, own]))
        sign_z0 = np.sign(z0 * d_eta[jet, own])
        yield JetTracks(
            jet_pt=float(jet_pt[jet]),
            jet_eta=float(jet_eta[jet]),
            jet_mass=float(jet_mass[jet]),
            pt=tracks.pt[own],
            eta=tracks.eta[own],
            phi=tracks.phi[own],
            distance=distance[jet, own],
            d0=sign_d0 * np.abs(d0) / resolution,
            z0=sign_z0 * np.abs(z0) * tracks.sine[own] / resolution,
            abs_d0=np.abs(d0),
        )


def _vertex(pt: Doubles, d0: Doubles, z0: Doubles) -> float:
    """Return z of the primary vertex: the pT-weighted median z0 of tracks near the beam line, or 0."""
    good = np.flatnonzero((pt >= _VERTEX_PT) & (np.abs(d0) <= _VERTEX_D0))
    if not len(good):
        return 0.0
    order = good[np.argsort(z0[good], kind="stable")]
    weight = np.cumsum(pt[order])
    return float(z0[order][np.searchsorted(weight, weight[-1] / 2)])


def _eta_from_vertex(vertex: float, eta: Doubles) -> Doubles:
    """Return the pseudorapidity of jets from the vertex, given that from the centre of the detector."""
    slope = np.sinh(eta)
    radius = np.minimum(_FACE_RADIUS, _FACE_LENGTH / np.maximum(np.abs(slope), 1e-9))
    return np.arcsinh(slope - vertex / radius)


def _lists(tables: Tables, name: str, columns: tuple[str, ...]) -> Iterator[list[Doubles]]:
    """Yield the columns of each event. Raises UnusableTruth if one is missing."""
    table = tables[name]
    if missing := [column for column in columns if column not in table.column_names]:
        raise UnusableTruth(f"table {name} lacks {', '.join(missing)}, which baselines of the task need")
    flat: list[Any] = [np.asarray(pc.list_flatten(table.column(name)), np.float64) for name in columns]
    edges = np.cumsum([0, *list_lengths(table, columns[0])])
    for start, stop in pairwise(edges.tolist()):
        yield [column[start:stop] for column in flat]


Features = npt.NDArray[np.float16]

#: Minimum d0 significance of displaced tracks.
DISPLACED: Final = 3.0
#: Number of tracks with the largest significances that have their own features.
_LEADING: Final = 4
_PION: Final = 0.13957  # mass, GeV

#: Columns of :func:`features`. Significances x are given as ±ln(1 + |x|).
NAMES: Final = (
    *("jet_pt", "jet_eta", "jet_mass", "tracks", "track_pt", "hardest", "width"),
    *(f"d0_{place}" for place in range(1, _LEADING + 1)),
    *(f"z0_{place}" for place in range(1, _LEADING + 1)),
    *("lowest_d0", "sum_d0"),
    *("displaced", "displaced_pt", "displaced_mass", "displaced_width", "farthest"),
)


def features(tables: Tables) -> Features:
    """Return features of shape (jets, features), in the order of NAMES, in float16 as the training data."""
    rows = [_of(jet) for jet in jets_of(tables)]
    return np.array(rows, np.float64).reshape(-1, len(NAMES)).astype(np.float16)


def _of(jet: JetTracks) -> list[float]:
    order = np.argsort(-jet.d0, kind="stable")
    total = float(jet.pt.sum())
    leading = np.zeros((2, _LEADING))
    leading[:, : len(order)] = signed_log(np.stack([jet.d0, jet.z0])[:, order[:_LEADING]])
    return [
        np.log(jet.jet_pt),
        abs(jet.jet_eta),
        np.log1p(jet.jet_mass),
        len(jet.pt),
        total / jet.jet_pt,
        _ratio(jet.pt.max(initial=0.0), total),
        _ratio(float(jet.pt @ jet.distance), total),
        *leading.ravel(),
        *signed_log(np.array([jet.d0.min(initial=0.0)])),
        float(np.log1p(np.maximum(jet.d0, 0.0)).sum()),
        *_displaced(jet, total),
    ]


def _displaced(jet: JetTracks, total: float) -> list[float]:
    """Return number, momentum fraction, mass, width and maximum |d0| of displaced tracks."""
    own = np.flatnonzero(jet.d0 > DISPLACED)
    pt = jet.pt[own]
    carried = float(pt.sum())
    along = pt * np.sinh(jet.eta[own])
    energy = float(np.sqrt(pt**2 + along**2 + _PION**2).sum())
    momentum = [float(part.sum()) for part in (pt * np.cos(jet.phi[own]), pt * np.sin(jet.phi[own]), along)]
    mass = np.sqrt(max(energy**2 - sum(part**2 for part in momentum), 0.0))
    width = _ratio(float(pt @ jet.distance[own]), carried)
    return [len(own), _ratio(carried, total), mass, width, jet.abs_d0[own].max(initial=0.0)]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def signed_log(values: Doubles) -> Doubles:
    """Return log(1 + |v|) with the sign of v."""
    return np.sign(values) * np.log1p(np.abs(values))
