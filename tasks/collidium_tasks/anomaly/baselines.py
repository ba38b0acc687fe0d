"""Features of events from measured quantities, and the baselines `energy` and `forest`.

`energy` is the energy in the calorimeters. `forest` is an isolation forest: it scores by how few random cuts
an event is separated from Standard Model events (F. T. Liu, K. M. Ting and Z.-H. Zhou, Isolation Forest, IEEE
International Conference on Data Mining (2008) 413). It is trained on features of simulated Standard Model
events that the package ships, so a score does not depend on other events of the mix.

These events have full precision and the channels of the mix in equal numbers: when they were rounded to five
digits, the rounding set them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import list_lengths
from collidium.contracts.task import Tables
from collidium.physics import Ragged, calibrated_energy, columns, eta, phi, pt
from collidium_tasks.anomaly.tally import CARD
from collidium_tasks.common import Read, shipped
from collidium_tasks.networks import loaded, saved

Floats = npt.NDArray[np.float64]

#: Minimum transverse impact parameter of displaced tracks, mm.
DISPLACED: Final = 1.0

#: The columns of :func:`features`; energies and momenta in GeV, lengths in mm.
NAMES: Final = (
    "hits",
    "tracks",
    "track_pt",
    "hardest_track_pt",
    "displaced_tracks",
    "largest_d0",
    "energy",
    "hardest_deposit",
    "transverse_energy",
    "missing_transverse_energy",
    "trackless_transverse_energy",
    "hard_towers",
)
#: The forest uses the first features only.
_OF_FOREST: Final = 10

#: Maximum |η|, and numbers of bins in η and φ, of calorimeter towers.
_LARGEST_ETA: Final = 4
_TOWERS: Final = (20, 16)
#: Minimum transverse energy of hard towers, GeV.
HARD: Final = 10.0
#: Maximum pT of tracks over transverse energy of trackless towers, both summed with neighbouring towers.
TRACKLESS: Final = 0.2


def features(tables: Tables) -> Floats:
    """Return features of shape (events, features), in the order of NAMES; each is ln(1 + value)."""
    hits = list_lengths(tables["tracker_hits"], "x").astype(np.float64)
    deposits, tracks = tables["calo_hits"], tables["tracks"]
    found = [hits, *_of_tracks(tracks), *_of_deposits(deposits), *_of_towers(deposits, tracks)]
    return np.log1p(np.stack(found, axis=1))


def energies(table: pa.Table) -> Floats:
    """Return the energy in the calorimeters of each event, GeV, shape (events,)."""
    lists = _Lists(table, "total_energy")
    return lists.sums(lists.of("total_energy"))


def _of_tracks(table: pa.Table) -> list[Floats]:
    lists = _Lists(table, "d0")
    d0, theta, qop = (lists.of(name) for name in ("d0", "theta", "qop"))
    with np.errstate(divide="ignore"):
        pt = np.abs(np.sin(theta) / qop)
    pt[~np.isfinite(pt)] = 0.0
    far = np.abs(d0)
    counts = lists.sums(np.ones(len(pt)))
    displaced = lists.sums((far > DISPLACED).astype(np.float64))
    return [counts, lists.sums(pt), lists.largest(pt), displaced, lists.largest(far)]


def _of_deposits(table: pa.Table) -> list[Floats]:
    lists = _Lists(table, "total_energy")
    energy, x, y, z = (lists.of(name) for name in ("total_energy", "x", "y", "z"))
    distance = np.sqrt(x * x + y * y + z * z)
    transverse = energy / np.where(distance > 0, distance, 1.0)
    missing = np.hypot(lists.sums(transverse * x), lists.sums(transverse * y))
    return [
        lists.sums(energy),
        lists.largest(energy),
        lists.sums(transverse * np.hypot(x, y)),
        missing,
    ]


def _of_towers(deposits: pa.Table, tracks: pa.Table) -> list[Floats]:
    cells = columns(deposits.select(["detector", "x", "y", "z", "total_energy"]))
    energy = _towers(cells, calibrated_energy(cells) / np.cosh(eta(cells)))
    trajectories = columns(tracks.select(["phi", "theta", "qop"]))
    with np.errstate(divide="ignore"):
        momentum = _towers(trajectories, pt(trajectories))
    trackless = _around(momentum) < TRACKLESS * _around(energy)
    return [(energy * trackless).sum(axis=(1, 2)), (energy > HARD).sum(axis=(1, 2)).astype(np.float64)]


def _towers(table: Mapping[str, Any], weights: Ragged) -> Floats:
    """Return sums of weights in towers, shape (events, η bins, φ bins)."""
    rows, turns = _TOWERS
    row = np.clip((eta(table).values / _LARGEST_ETA + 1) * rows / 2, 0, rows - 1).astype(np.int64)
    turn = (phi(table).values / (2 * np.pi) % 1 * turns).astype(np.int64) % turns
    place = (weights.event * rows + row) * turns + turn
    values = np.nan_to_num(weights.values, posinf=0)
    sums: Floats = np.bincount(place, values, len(weights) * rows * turns).astype(np.float64, copy=False)
    return sums.reshape(-1, rows, turns)


def _around(towers: Floats) -> Floats:
    """Return sums over each tower and its eight neighbours."""
    wide = np.pad(towers, ((0, 0), (1, 1), (0, 0)))
    rows: Floats = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    return rows + np.roll(rows, 1, axis=2) + np.roll(rows, -1, axis=2)


class _Lists:
    """List columns of a table as flat arrays, and sums and maxima by event."""

    def __init__(self, table: pa.Table, column: str) -> None:
        """``column`` is any of the list columns, which have equal lengths."""
        self._table = table
        self._events = table.num_rows
        self._event = np.repeat(np.arange(self._events), list_lengths(table, column))

    def of(self, column: str) -> Floats:
        flat: Any = pc.list_flatten(self._table.column(column))
        return np.asarray(flat, dtype=np.float64)

    def sums(self, values: Floats) -> Floats:
        return np.bincount(self._event, values, self._events).astype(np.float64)

    def largest(self, values: Floats) -> Floats:
        """Return maxima of non-negative numbers; 0 for empty lists."""
        largest = np.zeros(self._events)
        np.maximum.at(largest, self._event, values)
        return largest


def energy(tables: Tables) -> pa.Table:
    """A score for each event: its energy in GeV, as new particles are heavy. It sets the floor."""
    deposits = tables["calo_hits"]
    return deposits.select(["event_id"]).append_column("anomaly_score", pa.array(energies(deposits)))


#: Features and channels of a mix, written by ``docs/make_mix_features.py``.
MIX: Final = Path(__file__).with_name("mix")
#: Features of Standard Model events, written by ``collidium train-baseline anomaly/forest``.
REFERENCE: Final = "standard_model.npz"
#: The training sets of the channels of a mix, and the number of events of each: equal, as in the mix.
TRAINING: Final = ("ttbar-train", "zmumu-train", "zee-train", "jets-train")
EVENTS: Final = 100
_TREES: Final = 200
_SEED: Final = 20


def forest(tables: Tables) -> pa.Table:
    """A score for each event, 0 to 1, higher for events that are easy to separate. Needs scikit-learn."""
    score = pa.array(-_trained().score_samples(features(tables)[:, :_OF_FOREST]), pa.float64())
    return tables["tracks"].select(["event_id"]).append_column("anomaly_score", score)


@cache
def _trained() -> Any:
    from sklearn.ensemble import IsolationForest  # slow to import, and an extra

    return IsolationForest(n_estimators=_TREES, random_state=_SEED).fit(reference()[:, :_OF_FOREST])


def reference() -> Floats:
    """Return the shipped features of Standard Model events, shape (events, features)."""
    return loaded(shipped(__name__, REFERENCE))["features"]


def read_features(read: Read, dataset: str, events: int | None = EVENTS) -> Floats:
    """Return features of the first events of a dataset, shape (events, features)."""
    return np.concatenate([features(tables) for tables in read(dataset, CARD.inputs, events)])


def standard_model(read: Read) -> Floats:
    """Return features of Standard Model events, equally many of each channel, shape (events, features)."""
    return np.concatenate([read_features(read, dataset) for dataset in TRAINING])


def train(read: Read) -> bytes:
    """Return the file of :func:`reference`."""
    return saved({"features": standard_model(read).astype(np.float32)})
