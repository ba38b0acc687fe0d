"""What models of the task read and return."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.model import Feature, ModelInterface
from collidium.contracts.task import Tables
from collidium_tasks.jets.baselines import deepsets, features
from collidium_tasks.jets.checks import PROBABILITIES


def _tracks(tables: Tables) -> npt.NDArray[np.float64]:
    tracks, seen = deepsets.inputs(tables)
    return np.concatenate([tracks, seen[..., None]], axis=2)


MODELS: Final = ModelInterface(
    inputs={
        "jets": ("pt", "eta", "phi", "mass", "constituents"),
        "tracks": ("d0", "z0", "phi", "theta", "qop"),
        "calo_hits": ("detector", "x", "y", "z", "total_energy"),
    },
    rows="jets",
    key=("jet_id", "jet_id"),
    outputs=PROBABILITIES,
    features={
        "trees": Feature(
            description=f"Of each jet: {', '.join(features.NAMES)}.",
            shape=(len(features.NAMES),),
            tables=("jets", "tracks"),
            compute=features.features,
        ),
        "tracks": Feature(
            description=f"Of the {deepsets.TRACKS} tracks of each jet with the most significant d0: ln pT, "
            "ln of its fraction, distance, d0 and z0 significance, ln |d0|; ln pT, |eta|, ln(1 + mass) and "
            "tracks of the jet; last 1 if there is such a track, else all are 0.",
            shape=(deepsets.TRACKS, deepsets.QUANTITIES + 1),
            tables=("jets", "tracks"),
            compute=_tracks,
        ),
    },
)
