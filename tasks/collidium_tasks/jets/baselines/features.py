"""Features that identify b jets: tracks near each jet, their displacement, mass and momentum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import list_lengths
from collidium.contracts.task import Tables
from collidium.physics import delta_phi

Doubles = npt.NDArray[np.float64]

#: Minimum transverse momentum, in GeV, and maximum impact parameter, in mm: tracks beyond that come from
#: K0S, hyperons and the detector.
MIN_PT: Final = 0.5
MAX_D0: Final = 3.0
#: Maximum distance of a track from its jet.
RADIUS: Final = 0.4
#: Tracks that locate the primary vertex: pT in GeV, d0 in mm.
_VERTEX_PT: Final = 1.0
_VERTEX_D0: Final = 0.2
#: Position of jets: about the faces of the calorimeters, mm.
_FACE_RADIUS: Final = 1350.0
_FACE_LENGTH: Final = 3300.0
#: Resolution of d0, mm: a constant, and times 1 GeV / (pt √sin θ) what scattering adds. That of z0 is larger
#: by 1 / sin θ. Both measured on tracks of the built-in pipeline.
_CONSTANT: Final = 0.020
_SCATTERING: Final = 0.050

_TRACK_COLUMNS: Final = ("d0", "z0", "phi", "theta", "qop")
_JET_COLUMNS: Final = ("pt", "eta", "phi", "mass")


@dataclass(frozen=True, slots=True, eq=False)
class JetTracks:
    """The tracks of one jet, arrays of one length, and the jet; GeV and mm."""

    jet_pt: float
    jet_eta: float
    jet_mass: float
    pt: Doubles
    eta: Doubles
    phi: Doubles
    #: Distance to the jet in pseudorapidity and azimuth.
    distance: Doubles
    #: Impact parameters over their resolutions, positive for tracks that cross the jet after the collision.
    d0: Doubles
    z0: Doubles
    #: In mm, without a sign.
    far: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class _Tracks:
    """The selected tracks of an event, arrays of one length; GeV and mm."""

    pt: Doubles
    eta: Doubles
    phi: Doubles
    sine: Doubles
    d0: Doubles
    #: From the vertex.
    z0: Doubles
    #: Of d0.
    resolution: Doubles


def jets_of(tables: Tables) -> Iterator[JetTracks]:
    """Every jet of the tables ``jets`` and ``tracks``, in the order of the lists."""
    tracks, jets = _lists(tables["tracks"], _TRACK_COLUMNS), _lists(tables["jets"], _JET_COLUMNS)
    for of_tracks, of_jets in zip(tracks, jets, strict=True):
        if len(of_jets[0]):
            yield from _matched(of_jets, *_measured(*of_tracks))


def _measured(d0: Doubles, z0: Doubles, phi: Doubles, theta: Doubles, qop: Doubles) -> tuple[_Tracks, float]:
    """The selected tracks, and z of the vertex."""
    sine = np.maximum(np.sin(theta), 1e-6)
    pt = sine / np.maximum(np.abs(qop), 1e-9)
    vertex = _vertex(pt, d0, z0)
    chosen = (pt >= MIN_PT) & (np.abs(d0) <= MAX_D0)
    d0, z0, phi, theta, sine, pt = (column[chosen] for column in (d0, z0, phi, theta, sine, pt))
    eta = np.arctanh(np.clip(np.cos(theta), -0.999999, 0.999999))
    resolution = np.hypot(_CONSTANT, _SCATTERING / (pt * np.sqrt(sine)))
    return _Tracks(pt, eta, phi, sine, d0, z0 - vertex, resolution), vertex


def _matched(jets: list[Doubles], tracks: _Tracks, vertex: float) -> Iterator[JetTracks]:
    """Every jet with the tracks within RADIUS that are nearer to it than to any other."""
    jet_pt, jet_eta, jet_phi, jet_mass = jets
    seen = _seen_from(vertex, jet_eta)
    along = seen[:, None] - tracks.eta
    across = delta_phi(jet_phi[:, None], tracks.phi)
    distance = np.hypot(along, across)
    nearest = np.argmin(distance, axis=0)
    for jet in range(len(jet_pt)):
        own = np.flatnonzero((nearest == jet) & (distance[jet] < RADIUS))
        d0, z0, resolution = tracks.d0[own], tracks.z0[own], tracks.resolution[own]
        side = np.sign(d0 * np.sin(across[jet, own]))
        before = np.sign(z0 * along[jet, own])
        yield JetTracks(
            jet_pt=float(jet_pt[jet]),
            jet_eta=float(seen[jet]),
            jet_mass=float(jet_mass[jet]),
            pt=tracks.pt[own],
            eta=tracks.eta[own],
            phi=tracks.phi[own],
            distance=distance[jet, own],
            d0=side * np.abs(d0) / resolution,
            z0=before * np.abs(z0) * tracks.sine[own] / resolution,
            far=np.abs(d0),
        )


def _vertex(pt: Doubles, d0: Doubles, z0: Doubles) -> float:
    """z of the primary vertex: the pt-weighted median z0 of tracks near the beam line; 0 without any."""
    good = np.flatnonzero((pt >= _VERTEX_PT) & (np.abs(d0) <= _VERTEX_D0))
    if not len(good):
        return 0.0
    order = good[np.argsort(z0[good], kind="stable")]
    weight = np.cumsum(pt[order])
    return float(z0[order][np.searchsorted(weight, weight[-1] / 2)])


def _seen_from(vertex: float, eta: Doubles) -> Doubles:
    """Pseudorapidity of jets, given from the detector's centre, as seen from the vertex."""
    slope = np.sinh(eta)
    radius = np.minimum(_FACE_RADIUS, _FACE_LENGTH / np.maximum(np.abs(slope), 1e-9))
    return np.arcsinh(slope - vertex / radius)


def _lists(table: pa.Table, columns: tuple[str, ...]) -> Iterator[list[Doubles]]:
    """The columns of each event."""
    flat: list[Any] = [np.asarray(pc.list_flatten(table.column(name)), np.float64) for name in columns]
    edges = np.cumsum([0, *list_lengths(table, columns[0])])
    for start, stop in pairwise(edges.tolist()):
        yield [column[start:stop] for column in flat]


Features = npt.NDArray[np.float16]

#: Tracks with a significance above this are displaced.
DISPLACED: Final = 3.0
#: Number of leading tracks, by significance, with features of their own.
_LEADING: Final = 4
_PION: Final = 0.13957  # mass, GeV

#: The columns of :func:`features`. Significances x are given as ±ln(1 + |x|).
NAMES: Final = (
    *("jet_pt", "jet_eta", "jet_mass", "tracks", "track_pt", "hardest", "width"),
    *(f"d0_{place}" for place in range(1, _LEADING + 1)),
    *(f"z0_{place}" for place in range(1, _LEADING + 1)),
    *("lowest_d0", "sum_d0"),
    *("displaced", "displaced_pt", "displaced_mass", "displaced_width", "farthest"),
)


def features(tables: Tables) -> Features:
    """Shape (jets, features), in the order of NAMES, rounded as the training data."""
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
        _part(jet.pt.max(initial=0.0), total),
        _part(float(jet.pt @ jet.distance), total),
        *leading.ravel(),
        *signed_log(np.array([jet.d0.min(initial=0.0)])),
        float(np.log1p(np.maximum(jet.d0, 0.0)).sum()),
        *_displaced(jet, total),
    ]


def _displaced(jet: JetTracks, total: float) -> list[float]:
    """Number of displaced tracks, their fraction of the momentum, mass, width and maximum distance."""
    own = np.flatnonzero(jet.d0 > DISPLACED)
    pt = jet.pt[own]
    carried = float(pt.sum())
    along = pt * np.sinh(jet.eta[own])
    energy = float(np.sqrt(pt**2 + along**2 + _PION**2).sum())
    momentum = [float(part.sum()) for part in (pt * np.cos(jet.phi[own]), pt * np.sin(jet.phi[own]), along)]
    mass = np.sqrt(max(energy**2 - sum(part**2 for part in momentum), 0.0))
    width = _part(float(pt @ jet.distance[own]), carried)
    return [len(own), _part(carried, total), mass, width, jet.far[own].max(initial=0.0)]


def _part(one: float, of: float) -> float:
    return one / of if of > 0 else 0.0


def signed_log(values: Doubles) -> Doubles:
    """log(1 + |v|) with the sign of v, of each value."""
    return np.sign(values) * np.log1p(np.abs(values))
