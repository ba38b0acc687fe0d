"""Track finding by edge classification, among the hits that the helix finder leaves.

Most of these hits are of particles from decays, conversions and interactions in material, with few hits and
far from the beam line. First the helix finder searches again with looser limits. Then a small network scores
every pair of the remaining hits, and pairs that are mutually best become links of chains.
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

#: File of weights, written by ``collidium train-baseline tracking/edges``.
WEIGHTS: Final = "edges.npz"
#: Searches of the helix finder for tracks that start far from the beam line.
WIDE: Final = (
    Search(min_pt=0.1, beam_radius=40.0, beam_length=300.0, seed_layers=17, min_hits=4),
    Search(min_pt=0.05, beam_radius=200.0, beam_length=600.0, seed_layers=27, min_hits=4),
)
#: Maximum number of hits for edge classification; with more, as in pileup, there are too many pairs.
MAX_HITS: Final = 2500
#: Maximum distance of linked hits, mm, and minimum cosine of the angle between their line and the line from
#: the origin to the first hit.
REACH: Final = 700.0
FORWARD: Final = 0.3
#: Minimum output of the network for a link.
CUT: Final = 0.0
#: Number of rounds in which free hits are linked.
ROUNDS: Final = 6
#: Number of training events, false pairs per true pair, and the widths of the network.
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
    """Return the number of the track of each hit, from 0, or -1; shape (hits,)."""
    numbers, left = _helix_tracks(event)
    if len(left) > MAX_HITS:
        return numbers
    first, second, features = pairs(event, left)
    chains = linked(first, second, scores(weights(), features), len(left))
    kept = np.bincount(chains, minlength=len(left))[chains] > 1
    numbers[left[kept]] = numbers.max(initial=-1) + 1 + chains[kept]
    return numbers


def _helix_tracks(event: EventHits) -> tuple[npt.NDArray[np.int64], Indices]:
    """Return the tracks of the helix finder, and the remaining hits."""
    numbers = helix.track_numbers(event)
    if np.count_nonzero(numbers < 0) <= MAX_HITS:
        numbers = helix.track_numbers(event, WIDE, numbers)
    return numbers, np.flatnonzero(numbers < 0)


@cache
def weights() -> Arrays:
    """Return the shipped weights."""
    return loaded(shipped(__name__, WEIGHTS))


def scores(arrays: Mapping[str, Any], features: Floats) -> Floats:
    """Return the output of the network for each pair, shape (pairs,)."""
    output: Floats = dense(arrays, "edge", (features - arrays["mean"]) / arrays["spread"])[:, 0]
    return output


def pairs(event: EventHits, left: Indices) -> tuple[Indices, Indices, Floats]:
    """Return pairs of hits that may be linked, as indices of ``left`` with the inner hit first, and features.

    Shapes are (pairs,), (pairs,) and (pairs, features).
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
    """Return vectors between hits, their lengths, and the cosines of their angles to the first hit."""
    step = position[second] - position[first]
    length = np.linalg.norm(step, axis=1)
    distance = np.linalg.norm(position, axis=1)
    along = np.einsum("ij,ij->i", step, position[first]) / np.maximum(length * distance[first], 1e-9)
    return step, length, along


def _features(position: Floats, layer: Indices, first: Indices, second: Indices) -> Floats:
    """Return the inputs of the network, shape (pairs, features)."""
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
    """Return the chain of each hit, identified by its first hit; shape (hits,).

    Each hit is linked to at most one inner and one outer hit. Pairs that are the best of both hits are
    linked; this is repeated among free hits.
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
    """Train the network; return the file of weights. Needs jax and optax."""
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
    """Return features of an event's true pairs and of some false pairs, and the mask of true pairs."""
    _, left = _helix_tracks(event)
    particle = np.asarray(particles.values)[left]
    first, second, features = pairs(event, left)
    right = (particle[first] == particle[second]) & (particle[first] != 0)
    wrong = chance.permutation(np.flatnonzero(~right))[: WRONG * np.count_nonzero(right)]
    chosen = np.concatenate([np.flatnonzero(right), wrong])
    return features[chosen], right[chosen]
