"""Jets are those of anti-kt, found by trying every pair."""

from __future__ import annotations

import subprocess
import sys
from math import hypot, pi

import numpy as np
import pytest

from collidium_plugins.jet_finder import RADIUS
from collidium_plugins.jet_finder.clustering import FourVectors, anti_kt

Vector = tuple[float, float, float, float]


def vectors(event: list[int], momenta: list[Vector]) -> FourVectors:
    columns = np.array(momenta, np.float64).reshape(-1, 4).T
    return FourVectors(np.array(event, np.int64), *columns)


def random_vectors(random: np.random.Generator, count: int) -> list[Vector]:
    """Massless, crowded enough for jets of several."""
    pt, eta, phi = random.exponential(10, count), random.normal(0, 0.8, count), random.uniform(-pi, pi, count)
    columns = (pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta), pt * np.cosh(eta))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def by_every_pair(momenta: list[Vector], min_pt: float) -> set[frozenset[int]]:
    """What is in each jet of at least ``min_pt``: the definition, with no thought of speed."""
    left: dict[frozenset[int], Vector] = {frozenset([i]): one for i, one in enumerate(momenta)}
    jets: set[frozenset[int]] = set()
    while left:
        to_beam = {(1 / pt2(one), jet, jet) for jet, one in left.items()}
        pairs = {
            (min(1 / pt2(left[a]), 1 / pt2(left[b])) * distance2(left[a], left[b]) / RADIUS**2, a, b)
            for a in left
            for b in left
            if a != b
        }
        _, a, b = min(to_beam | pairs, key=lambda pair: pair[0])
        one = left.pop(a)
        if a == b:
            jets |= {a} if pt2(one) >= min_pt**2 else set()
        else:
            left[a | b] = tuple(map(sum, zip(one, left.pop(b), strict=True)))
    return jets


def pt2(one: Vector) -> float:
    return one[0] ** 2 + one[1] ** 2


def distance2(one: Vector, other: Vector) -> float:
    (y, phi), (other_y, other_phi) = (
        (0.5 * np.log((e + pz) / (e - pz)), np.arctan2(py, px)) for px, py, pz, e in (one, other)
    )
    around = abs(phi - other_phi)
    return hypot(y - other_y, min(around, 2 * pi - around)) ** 2


@pytest.mark.parametrize("seed", range(8))
def test_jets_are_those_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    events = [random_vectors(random, 25), [], random_vectors(random, 12)]
    together = [one for momenta in events for one in momenta]
    clusters = anti_kt(vectors([0] * 25 + [2] * 12, together), 3, min_pt=15)
    found: dict[int, set[frozenset[int]]] = {0: set(), 1: set(), 2: set()}
    for number, event in enumerate(clusters.event.tolist()):
        begins = 25 if event else 0
        found[event].add(frozenset((np.flatnonzero(clusters.jet == number) - begins).tolist()))
    assert found == {number: by_every_pair(momenta, 15) for number, momenta in enumerate(events)}
    assert any(len(jet) > 1 for jets in found.values() for jet in jets)


@pytest.mark.parametrize("momenta", [[], [(3.0, 0.0, 0.0, 3.0)]])
def test_events_without_jets(momenta: list[Vector]) -> None:
    clusters = anti_kt(vectors([1] * len(momenta), momenta), 3, min_pt=15)
    assert len(clusters.event) == 0
    assert clusters.jet.tolist() == [-1] * len(momenta)


def test_nothing_is_printed() -> None:
    """FastJet would put a banner on standard output, among what programs read."""
    code = (
        "import numpy as np\n"
        "from collidium_plugins.jet_finder.clustering import anti_kt\n"
        "from collidium_plugins.jet_finder.clustering import FourVectors\n"
        "one = np.array([30.0])\n"
        "print(len(anti_kt(FourVectors(np.array([0]), one, 0 * one, 0 * one, one), 1, 20.0).event))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
