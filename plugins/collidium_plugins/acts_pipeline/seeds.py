"""Random numbers: every event draws its own, from what it is and nothing else.

Events are the same whatever the number of events, processes and chunks, because no stream of random numbers
is shared by two of them.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

#: Pythia takes seeds from 1 to this.
_PYTHIA_SEEDS: Final = 900_000_000


def number(purpose: str, *identity: str | int) -> int:
    """128 bits that belong to this purpose and identity alone."""
    text = "\0".join([purpose, *map(str, identity)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def generator(purpose: str, *identity: str | int) -> np.random.Generator:
    """The stream of random numbers of this purpose and identity."""
    return np.random.Generator(np.random.PCG64(number(purpose, *identity)))


def for_pythia(purpose: str, *identity: str | int) -> tuple[int, int]:
    """A seed of Pythia's generator, and 24 bits to start its arithmetic sequence with.

    The seeds alone are too few: among 100,000 events some pairs would have one in common.
    """
    bits = number(purpose, *identity)
    return bits % _PYTHIA_SEEDS + 1, bits >> 104


def for_acts(purpose: str, *identity: str | int) -> int:
    """A seed of 64 bits for generators of ACTS."""
    return number(purpose, *identity) >> 64
