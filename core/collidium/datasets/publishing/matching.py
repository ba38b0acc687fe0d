"""Chooses signal events whose visible energies are distributed as those of the background.

Signals of heavy particles would otherwise stand out by their energy alone. Energies in, indices out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

Energies = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

#: Width of the ranges of the natural logarithm of energies in which signal and background are in proportion.
WIDTH: Final = 0.2


def matched_events(
    background: Mapping[str, Energies],
    signals: Mapping[str, Energies],
    percent: float,
    chance: np.random.Generator,
) -> dict[str, Indices]:
    """Choose as many events of each signal in every range of energies as is their share of the background.

    Ranges in which a signal has too few events are left out, with all events of the background in them.

    Parameters
    ----------
    background, signals : mapping of str to numpy.ndarray of float64, shape (events,)
        Visible energies of the events of each channel, positive, in any unit.
    percent : float
        How much of the chosen events is signal, all signals together.
    chance : numpy.random.Generator
        Chooses signal events, and rounds their numbers.

    Returns
    -------
    dict of str to numpy.ndarray of int64, shape (chosen,)
        The chosen events of each channel, rising.

    Raises
    ------
    ValueError
        If no range of energies is left, or no signal.
    """
    energies = {**background, **signals}
    ranges = {name: np.floor(np.log(values) / WIDTH).astype(np.int64) for name, values in energies.items()}
    lowest = min(int(values.min()) for values in ranges.values() if len(values))
    counts = max(int(values.max()) for values in ranges.values() if len(values)) - lowest + 1
    there = {name: np.bincount(values - lowest, minlength=counts) for name, values in ranges.items()}
    total = np.sum([there[name] for name in background], axis=0)
    wanted = total * percent / (100 - percent) / len(signals)
    kept = np.logical_and.reduce([there[name] >= np.ceil(wanted) for name in signals]) & (total > 0)
    if wanted[kept].sum() < 1:
        raise ValueError(
            f"{total[kept].sum()} of {total.sum()} background events have visible energies of which every "
            "signal has enough events: simulate more of them, or ask for less signal"
        )
    chosen = {name: np.flatnonzero(kept[ranges[name] - lowest]) for name in background}
    for name in signals:
        numbers = np.floor(wanted + chance.random(counts)).astype(np.int64) * kept
        order = chance.permutation(len(ranges[name]))
        order = order[np.argsort(ranges[name][order], kind="stable")]
        place = np.arange(len(order)) - np.repeat(np.cumsum(there[name]) - there[name], there[name])
        chosen[name] = np.sort(order[place < np.repeat(numbers, there[name])])
    return chosen
