"""Scores in bins: efficiencies by properties of particles, fake and duplicate rates by length of tracks.

A particle is found if it has a correct track, as in ``double_majority_eff_pt1``. The truth tables hold the
number of each particle's bin, from 1; particles with 0 do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Curve

#: Numerators and denominators of a curve, shape (2, bins).
BinCounts = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Binning:
    """A curve, and the edges of its bins."""

    title: str
    quantity: str
    edges: tuple[float, ...]

    @property
    def bins(self) -> int:
        return len(self.edges) - 1

    def numbers(self, values: npt.NDArray[Any], counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Return the bin of each value, from 1; 0 outside of all bins and where not ``counted``."""
        number = np.searchsorted(self.edges, values, side="right")
        return np.where(counted & (number <= self.bins), number, 0).astype(np.uint8)


#: Efficiencies by name, which is also that of the column in the truth.
OF_PARTICLES: Final[Mapping[str, Binning]] = {
    "efficiency_pt": Binning(
        "Efficiency", "pT (GeV)", (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
    ),
    "efficiency_eta": Binning("Efficiency", "η", tuple(np.linspace(-3, 3, 13).tolist())),
    "efficiency_radius": Binning(
        "Efficiency", "production radius (mm)", (0, 1, 5, 10, 20, 30, 50, 80, 120, 180, 260)
    ),
}
#: Minimum number of hits of the tracks in each bin; the last one is the upper limit of the last bin.
_MIN_LENGTHS: Final = (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 21, 31)
_LENGTHS: Final = tuple(length - 0.5 for length in _MIN_LENGTHS)
OF_TRACKS: Final[Mapping[str, Binning]] = {
    "fake_rate_length": Binning("Fake rate", "hits of the track", _LENGTHS),
    "duplicate_rate_length": Binning("Duplicate rate", "hits of the track", _LENGTHS),
}
ALL: Final = {**OF_PARTICLES, **OF_TRACKS}


def of_particles(
    numbers: Mapping[str, npt.NDArray[np.uint8]], found: npt.NDArray[np.bool_]
) -> dict[str, BinCounts]:
    """Count ``found`` particles, and all particles, in each bin."""
    counts = {}
    for name, binning in OF_PARTICLES.items():
        bins = binning.bins + 1
        number = numbers[name] + found * np.uint8(bins)
        lost, part = np.bincount(number, minlength=2 * bins).reshape(2, bins)[:, 1:]
        counts[name] = np.array([part, lost + part], np.uint32)
    return counts


def of_tracks(
    lengths: npt.NDArray[Any], matched: npt.NDArray[Any], duplicated: npt.NDArray[Any]
) -> dict[str, BinCounts]:
    """Count fakes and duplicates in bins of length.

    Parameters
    ----------
    lengths, matched, duplicated
        Lengths of all tracks, of tracks that a particle dominates, and of tracks whose particle dominates
        several tracks.
    """
    every, real, shared = (_count_lengths(some) for some in (lengths, matched, duplicated))
    return {
        "fake_rate_length": np.array([every - real, every], np.uint32),
        "duplicate_rate_length": np.array([shared, every], np.uint32),
    }


def curves(tallies: npt.NDArray[Any]) -> list[Curve]:
    """Return the curves of a tally: a structured array with one record per event."""
    found = []
    for name, binning in ALL.items():
        part, whole = tallies[name].sum(axis=0, dtype=np.int64)
        found.append(
            Curve(
                name=name,
                title=binning.title,
                quantity=binning.quantity,
                edges=binning.edges,
                part=part.tolist(),
                whole=whole.tolist(),
                events=np.count_nonzero(tallies[name][:, 1], axis=0).tolist(),
            )
        )
    return found


def _count_lengths(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    by_length = np.bincount(np.minimum(lengths, _MIN_LENGTHS[-1]), minlength=_MIN_LENGTHS[-1] + 1)
    counts: npt.NDArray[np.int64] = np.add.reduceat(by_length, _MIN_LENGTHS)[:-1]
    return counts
