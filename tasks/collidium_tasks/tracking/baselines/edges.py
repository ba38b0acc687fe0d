"""Tracks with links that a small network judges, among the hits that the helix finder leaves.

Most of these hits are of particles from decays, conversions and interactions in material: few hits, far from
the beam line. Wider searches of the helix finder take some; then a network judges every pair of the rest, and
pairs that are each other's best become links of chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.physics import delta_phi
from collidium_tasks.common import Read, labels, shipped
from collidium_tasks.networks import Arrays, Schedule, dense, fitted, initial, loaded, saved
from collidium_tasks.tracking.baselines import EventHits, Floats, events_of, helix, predictions
from collidium_tasks.tracking.baselines.helix import Search
from collidium_tasks.tracking.baselines.helix.detector import LAYERS, Indices

#: The weights; ``collidium train-baseline tracking/edges`` writes them.
WEIGHTS: Final = "edges.npz"
#: Searches for tracks that begin far from the beam line.
WIDE: Final = (
    Search(min_pt=0.1, beam_radius=40.0, beam_length=300.0, seed_layers=17, min_hits=4),
    Search(min_pt=0.05, beam_radius=200.0, beam_length=600.0, seed_layers=27, min_hits=4),
)
#: Where the helix finder leaves more hits, as with much pileup, its tracks are all: there are too many pairs.
MAX_HITS: Final = 2500
#: Maximum distance of linked hits, mm, and minimum cosine of the angle between their line and that from the
#: origin to the first.
REACH: Final = 700.0
FORWARD: Final = 0.3
#: Minimum output of the network.
CUT: Final = 0.0
#: How often hits that are free yet are linked.
ROUNDS: Final = 6
#: Events that are learned from, wrong pairs for each right one, and the widths of the network.
EVENTS: Final = 36
WRONG: Final = 6
WIDTHS: Final = (15, 32, 32, 1)
_SCHEDULE: Final = Schedule(epochs=6, batch=512)

_LONG: Final = np.array([*(layer.long for layer in LAYERS), False])


def reconstruct(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tracks of every event in the table ``tracker_hits``, which needs x, y and z (mm).

    Those of the baseline `helix`, and chains of hits that it leaves, linked by a network of 1,601 weights.
    `collidium train-baseline tracking/edges` trains it on `ttbar-train` of `collidium seed`.
    """
    return predictions((event, track_numbers(event)) for event in events_of(tables["tracker_hits"]))


def track_numbers(event: EventHits) -> npt.NDArray[np.int64]:
    """Number of the track of each hit, from 0, or -1; shape (hits,)."""
    numbers, left = _of_helices(event)
    if len(left) > MAX_HITS:
        return numbers
    first, second, features = pairs(event, left)
    chains = linked(first, second, judged(weights(), features), len(left))
    kept = np.bincount(chains, minlength=len(left))[chains] > 1
    numbers[left[kept]] = numbers.max(initial=-1) + 1 + chains[kept]
    return numbers


def _of_helices(event: EventHits) -> tuple[npt.NDArray[np.int64], Indices]:
    """The tracks of the helix finder, and the hits that it leaves."""
    numbers = helix.track_numbers(event)
    if np.count_nonzero(numbers < 0) <= MAX_HITS:
        numbers = helix.track_numbers(event, WIDE, numbers)
    return numbers, np.flatnonzero(numbers < 0)


@cache
def weights() -> Arrays:
    """The weights that come with the package."""
    return loaded(shipped(__name__, WEIGHTS))


def judged(arrays: Mapping[str, Any], features: Floats) -> Floats:
    """The output of the network for each pair, shape (pairs,)."""
    output: Floats = dense(arrays, "edge", (features - arrays["mean"]) / arrays["spread"])[:, 0]
    return output


def pairs(event: EventHits, left: Indices) -> tuple[Indices, Indices, Floats]:
    """Pairs of hits that may follow each other, by their places in ``left``, outwards; and their features.

    Returns arrays of shape (pairs,), (pairs,) and (pairs, features).
    """
    position = np.stack([event.x, event.y, event.z], axis=1)[left]
    order = np.argsort(np.linalg.norm(position, axis=1), kind="stable")
    first, second = (order[places] for places in np.triu_indices(len(left), 1))
    _, length, along = _steps(position, first, second)
    near = (length < REACH) & (along > FORWARD)
    first, second = first[near], second[near]
    layer = helix.Hits.of(event).layer[left]
    return first, second, _features(position, layer, first, second)


def _steps(position: Floats, first: Indices, second: Indices) -> tuple[Floats, Floats, Floats]:
    """Lines between hits, their lengths, and the cosine of the angle to that from the origin to the first."""
    step = position[second] - position[first]
    length = np.linalg.norm(step, axis=1)
    distance = np.linalg.norm(position, axis=1)
    along = np.einsum("ij,ij->i", step, position[first]) / np.maximum(length * distance[first], 1e-9)
    return step, length, along


def _features(position: Floats, layer: Indices, first: Indices, second: Indices) -> Floats:
    """What the network judges pairs by, shape (pairs, features)."""
    step, length, along = _steps(position, first, second)
    x, y, z = position.T
    radius, phi = np.hypot(x, y), np.arctan2(y, x)
    eta = np.arcsinh(z / np.maximum(radius, 1e-9))
    across, rise = np.abs(delta_phi(phi[second], phi[first])), np.abs(eta[second] - eta[first])
    aside = np.abs(step[:, 0] * y[first] - step[:, 1] * x[first]) / np.maximum(radius[first], 1e-9)
    features = [
        radius[first] / 500,
        np.abs(z[first]) / 1000,
        radius[second] / 500,
        np.where(z[first] < 0, -z[second], z[second]) / 1000,
        np.log(length + 1e-3),
        along,
        across,
        np.log(across + 1e-4),
        rise,
        np.log(rise + 1e-4),
        np.log(aside + 1e-2),
        layer[first] == layer[second],
        _LONG[layer[first]],
        _LONG[layer[second]],
        np.abs(layer[first] - layer[second]) / 5,
    ]
    return np.stack(features, axis=1)


def linked(first: Indices, second: Indices, output: Floats, hits: int) -> Indices:
    """The chain of each hit, by the place of its first one; shape (hits,).

    Each hit is linked to one inwards and one outwards at most: pairs that are the best for both, then
    again among those that are free.
    """
    before, taken = np.arange(hits), np.zeros((2, hits), np.bool_)
    good = output > CUT
    first, second, output = first[good], second[good], output[good]
    for _ in range(ROUNDS):
        best = np.full((2, hits), -np.inf)
        np.maximum.at(best[0], first, output)
        np.maximum.at(best[1], second, output)
        mutual = (output == best[0, first]) & (output == best[1, second])
        before[second[mutual]] = first[mutual]
        taken[0, first[mutual]] = taken[1, second[mutual]] = True
        free = ~(taken[0, first] | taken[1, second])
        first, second, output = first[free], second[free], output[free]
    while np.any(before != before[before]):
        before = before[before]
    return before


def train(read: Read, schedule: Schedule = _SCHEDULE, events: int = EVENTS) -> bytes:
    """The file of weights. Needs jax and optax."""
    import optax  # pyright: ignore[reportMissingImports]  # an extra

    chance = np.random.default_rng(schedule.seed)
    found = [
        _labelled(event, particles, chance)
        for tables in read("ttbar-train", ("tracker_hits",), events)
        for event, particles in zip(
            events_of(tables["tracker_hits"]), labels(tables, "tracker_hits", "particle_id"), strict=True
        )
    ]
    x, right = (np.concatenate(of) for of in zip(*found, strict=True))
    scaling = {"mean": x.mean(axis=0), "spread": x.std(axis=0) + 1e-9}
    data = {
        "x": ((x - scaling["mean"]) / scaling["spread"]).astype(np.float32),
        "right": right.astype(np.float32),
    }

    def loss(weights: Any, x: Any, right: Any) -> Any:
        return optax.sigmoid_binary_cross_entropy(dense(weights, "edge", x)[:, 0], right).mean()

    return saved({**fitted(initial(chance, edge=WIDTHS), loss, data, schedule), **scaling})


def _labelled(
    event: EventHits, particles: Any, chance: np.random.Generator
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Features of an event's right pairs and of some wrong ones, and which are right."""
    _, left = _of_helices(event)
    particle = np.asarray(particles.values)[left]
    first, second, features = pairs(event, left)
    right = (particle[first] == particle[second]) & (particle[first] != 0)
    wrong = chance.permutation(np.flatnonzero(~right))[: WRONG * np.count_nonzero(right)]
    chosen = np.concatenate([np.flatnonzero(right), wrong])
    return features[chosen], right[chosen]
