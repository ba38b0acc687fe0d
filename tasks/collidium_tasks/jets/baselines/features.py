"""Features that identify b jets: displaced tracks, their mass and momentum."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Tables
from collidium_tasks.jets.baselines.matching import Doubles, JetTracks, jets_of

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
    """Shape (jets, features), in the order of NAMES, rounded as those that come with the package."""
    rows = [_of(jet) for jet in jets_of(tables)]
    return np.array(rows, np.float64).reshape(-1, len(NAMES)).astype(np.float16)


def _of(jet: JetTracks) -> list[float]:
    order = np.argsort(-jet.d0, kind="stable")
    total = float(jet.pt.sum())
    leading = np.zeros((2, _LEADING))
    leading[:, : len(order)] = _signed_log(np.stack([jet.d0, jet.z0])[:, order[:_LEADING]])
    return [
        np.log(jet.jet_pt),
        abs(jet.jet_eta),
        np.log1p(jet.jet_mass),
        len(jet.pt),
        total / jet.jet_pt,
        _part(jet.pt.max(initial=0.0), total),
        _part(float(jet.pt @ jet.distance), total),
        *leading.ravel(),
        *_signed_log(np.array([jet.d0.min(initial=0.0)])),
        float(np.log1p(np.maximum(jet.d0, 0.0)).sum()),
        *_displaced(jet, total),
    ]


def _displaced(jet: JetTracks, total: float) -> list[float]:
    """How many tracks are displaced, what part of the momentum they carry, their mass, width and distance."""
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


def _signed_log(values: Doubles) -> Doubles:
    return np.sign(values) * np.log1p(np.abs(values))
