"""DeepSets on the tracks of a jet (M. Zaheer et al., arXiv:1703.06114; ATLAS, ATL-PHYS-PUB-2020-014)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import Tables
from collidium_tasks.common import Read, labels, shipped
from collidium_tasks.jets.baselines import predictions
from collidium_tasks.jets.baselines.features import JetTracks, jets_of, signed_log
from collidium_tasks.jets.card import BOTTOM, CHARM, LIGHT
from collidium_tasks.networks import Arrays, Schedule, dense, fitted, initial, loaded, saved

Floats = npt.NDArray[np.float64]

#: File of weights, written by ``collidium train-baseline jets/deepsets``.
WEIGHTS: Final = "deepsets.npz"
#: Maximum number of tracks per jet, those with the most significant d0.
TRACKS: Final = 20
#: Quantities of a track, including those of its jet.
QUANTITIES: Final = 10
#: Networks whose outputs are averaged, and the width of their layers.
MEMBERS: Final = 4
WIDTH: Final = 32
#: Divisor of sums over tracks, which makes them of order 1.
SCALE: Final = 8
#: Order of the outputs.
_FLAVOURS: Final = (LIGHT, CHARM, BOTTOM)
_SCHEDULE: Final = Schedule(epochs=30, batch=128, rate=5e-3, decay=1e-2)


def reconstruct(tables: Tables) -> pa.Table:
    """Four networks that sum over the tracks of a jet, of 19,000 weights together.

    `collidium train-baseline jets/deepsets` trains it on `ttbar-train` of `collidium seed`, in seconds.
    """
    tracks, seen = inputs(tables)
    scores = outputs(weights(), tracks, seen)
    probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return predictions(tables["jets"], probabilities[:, 2], probabilities[:, 1])


@cache
def weights() -> Arrays:
    """Return the shipped weights."""
    return loaded(shipped(__name__, WEIGHTS))


def inputs(tables: Tables) -> tuple[Floats, Floats]:
    """Return tracks of jets, shape (jets, TRACKS, QUANTITIES), and their mask, shape (jets, TRACKS)."""
    jets = [_of(jet) for jet in jets_of(tables)]
    tracks, seen = np.zeros((len(jets), TRACKS, QUANTITIES)), np.zeros((len(jets), TRACKS))
    for number, rows in enumerate(jets):
        tracks[number, : len(rows)] = rows
        seen[number, : len(rows)] = 1.0
    return tracks, seen


def _of(jet: JetTracks) -> Floats:
    order = np.argsort(-np.abs(jet.d0), kind="stable")[:TRACKS]
    pt = jet.pt[order]
    own = [
        np.log(pt),
        np.log(pt / jet.jet_pt),
        jet.distance[order],
        signed_log(jet.d0[order]),
        signed_log(jet.z0[order]),
        np.log(jet.abs_d0[order] + 1e-3),
    ]
    whole = np.log(jet.jet_pt), abs(jet.jet_eta), np.log1p(jet.jet_mass), len(jet.pt)
    return np.column_stack([*own, *(np.full(len(pt), value) for value in whole)])


def outputs(arrays: Mapping[str, Any], tracks: Any, seen: Any) -> Any:
    """Return the logits of the flavours, shape (jets, 3); NumPy or JAX arrays."""
    return sum(members(arrays, tracks, seen)) / MEMBERS


def members(arrays: Mapping[str, Any], tracks: Any, seen: Any) -> list[Any]:
    """Return the outputs of each network, each of shape (jets, 3)."""
    scaled, found = (tracks - arrays["mean"]) / arrays["spread"], []
    for number in range(MEMBERS):
        each = dense(arrays, f"track{number}", scaled)
        whole = (each * (each > 0) * seen[..., None]).sum(axis=1) / SCALE
        found.append(dense(arrays, f"jet{number}", whole))
    return found


def train(read: Read, schedule: Schedule = _SCHEDULE) -> bytes:
    """Train the networks; return the file of weights. Needs jax and optax."""
    import optax  # pyright: ignore[reportMissingImports]  # an extra

    blocks = [
        (*inputs(tables), np.asarray(pc.list_flatten(labels(tables, "jets", "flavour"))))
        for tables in read("ttbar-train", ("jets", "tracks"))
    ]
    tracks, seen, flavour = map(np.concatenate, zip(*blocks, strict=True))
    there = tracks[seen > 0]
    scaling = {"mean": there.mean(axis=0), "spread": there.std(axis=0)}
    data: Arrays = {
        "tracks": tracks.astype(np.float32),
        "seen": seen.astype(np.float32),
        "flavour": np.searchsorted(_FLAVOURS, flavour),
    }

    def loss(weights: Any, tracks: Any, seen: Any, flavour: Any) -> Any:
        outputs = members({**weights, **scaling}, tracks, seen)
        cross_entropy = optax.softmax_cross_entropy_with_integer_labels
        return sum(cross_entropy(scores, flavour).mean() for scores in outputs)

    widths = {"track": (QUANTITIES, WIDTH, WIDTH, WIDTH), "jet": (WIDTH, WIDTH, WIDTH, 3)}
    sizes = {f"{name}{number}": of for number in range(MEMBERS) for name, of in widths.items()}
    start = initial(np.random.default_rng(schedule.seed), **sizes)
    return saved({**fitted(start, loss, data, schedule), **scaling})
