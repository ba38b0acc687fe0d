"""Weights of hits as in the TrackML challenge: long, fast tracks and their ends matter most.

Arrays in, arrays out; :mod:`.truth` finds the arrays in tables of a dataset.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Weights along a particle from its first hit to its last, stretched linearly over its hits.
ORDER: Final = (10, 8, 6, 5, 3, 3, 3, 5, 6)
#: Hits of particles with fewer weigh nothing.
MIN_HITS: Final = 4
#: Particles with more count as if they had as many; their later hits weigh nothing.
MAX_HITS: Final = 20
#: Transverse momenta in GeV and the factors between which it is linear; 0 below the first momentum.
PT, PT_FACTORS = (0.05, 0.5, 3.0), (0.2, 0.2, 1.0)


def pt_factors(pt: Floats) -> Floats:
    """Return the factor of each particle's hits: 0.2 up to 0.5 GeV, 1 from 3 GeV on, linear in between.

    Parameters
    ----------
    pt : numpy.ndarray of float64, shape (particles,)
        Transverse momenta in GeV. A particle below 0.05 GeV or with NaN has factor 0.

    Examples
    --------
    >>> pt_factors(np.array([0.01, 0.2, 1.75, 40.0, np.nan])).tolist()
    [0.0, 0.2, 0.6, 1.0, 0.0]
    """
    return np.nan_to_num(np.interp(pt, PT, PT_FACTORS, left=0.0), nan=0.0)


def _order_weights() -> Floats:
    """By the number of a particle's hits and the place of one, shape (MAX_HITS + 1, MAX_HITS + 1)."""
    weights = np.zeros((MAX_HITS + 1, MAX_HITS + 1))
    for hits in range(MIN_HITS, MAX_HITS + 1):
        stretched = np.arange(len(ORDER)) * (hits - 1) / (len(ORDER) - 1)
        weights[hits, :hits] = np.interp(np.arange(hits), stretched, ORDER)
        weights[hits] /= weights[hits].sum()
    return weights


def hit_weights(event: Integers, particle: Integers, distance: Floats, factor: Floats) -> Floats:
    """Return the weight of each hit; those of an event add up to one, or to zero where none counts.

    Parameters
    ----------
    event : numpy.ndarray of int64, shape (hits,)
        Events, in rising order.
    particle : numpy.ndarray of int64, shape (hits,)
        Index of the hit's particle among those of all events; -1 is noise, which weighs nothing.
    distance : numpy.ndarray of float64, shape (hits,)
        What orders the hits of a particle: the distance from its vertex, in mm. Equal ones share the middle
        place, rounded down.
    factor : numpy.ndarray of float64, shape (particles,)
        Factor of each particle, as of :func:`pt_factors`.

    References
    ----------
    S. Amrouche et al., The Tracking Machine Learning challenge: Accuracy phase, arXiv:1904.06778, section 4;
    ``weights.py`` of trackml-library.
    """
    weights = np.zeros(len(particle))
    owned = np.flatnonzero(particle >= 0)
    order = owned[np.lexsort((distance[owned], particle[owned]))]
    owner = particle[order]
    is_first = np.diff(owner, prepend=-1) != 0
    starts, hits = _runs(is_first)
    ties, lengths = _runs(is_first | (np.diff(distance[order], prepend=np.nan) != 0))
    place = np.repeat(ties + (lengths - 1) // 2, lengths) - np.repeat(starts, hits)
    table = _order_weights()
    weights[order] = table[np.minimum(np.repeat(hits, hits), MAX_HITS), np.minimum(place, MAX_HITS)]
    weights[order] *= factor[owner]
    number = np.cumsum(np.diff(event, prepend=event[:1]) != 0)
    total = np.bincount(number, weights)
    weights /= np.where(total > 0, total, 1.0)[number]
    return weights


def _runs(begins: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Where runs begin, and their lengths."""
    starts = np.flatnonzero(begins)
    return starts, np.diff(starts, append=len(begins))
