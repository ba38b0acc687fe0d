"""Seeds of random numbers, derived from a purpose and the identity of an event.

Every event has random streams of its own, so events do not depend on the number of events, processes and
chunks of a run.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

#: Pythia accepts seeds from 1 to this.
_PYTHIA_SEEDS: Final = 900_000_000


def number(purpose: str, *identity: str | int) -> int:
    """Return a seed of 128 bits for a purpose and an identity: their BLAKE2b hash."""
    text = "\0".join([purpose, *map(str, identity)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def generator(purpose: str, *identity: str | int) -> np.random.Generator:
    """Return the NumPy generator of a purpose and an identity."""
    return np.random.Generator(np.random.PCG64(number(purpose, *identity)))


def for_pythia(purpose: str, *identity: str | int) -> tuple[int, int]:
    """Return a seed of Pythia's generator, and 24 bits for the start of its arithmetic sequence.

    The seed alone has too few values: some of 100,000 events would share one.
    """
    bits = number(purpose, *identity)
    return bits % _PYTHIA_SEEDS + 1, bits >> 104


def for_acts(purpose: str, *identity: str | int) -> int:
    """Return a seed of 64 bits for ACTS."""
    return number(purpose, *identity) >> 64
