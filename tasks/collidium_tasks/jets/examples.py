"""The interface of models of the task, and baselines as ONNX models.

Baselines as models need onnx; trees also need scikit-learn and skl2onnx.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.model import Feature, ModelInterface
from collidium.contracts.task import Tables
from collidium_tasks.jets.baselines import deepsets, features, trees
from collidium_tasks.jets.baselines.features import NAMES
from collidium_tasks.jets.card import BOTTOM, CHARM, PROBABILITIES
from collidium_tasks.networks import Files, dense_graph, files, graph, of_estimator

_LAYERS = 3


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


def trees_model() -> Files:
    """Return the baseline `trees` as a model."""
    return files(
        of_estimator(trees.trained(), len(NAMES), zipmap=False),
        f"""task = "jets"
batch = "events"

[inputs]
x = {{ source = "features/trees", dtype = "float32" }}

[outputs]
probabilities = [{_columns(trees.trained().classes_.tolist())}]
""",
    )


def _columns(codes: list[int]) -> str:
    names = {BOTTOM: "prob_b", CHARM: "prob_c"}
    return ", ".join(f'"{names.get(code, "prob_light")}"' for code in codes)


def deepsets_model() -> Files:
    """Return the baseline `deepsets` as a model."""
    weights = deepsets.weights()
    constants = {name.replace(".", "_"): array.astype(np.float32) for name, array in weights.items()}
    lines = []
    for member in range(deepsets.MEMBERS):
        lines.append(f"""
            {dense_graph(f"track{member}", "scaled", _LAYERS)}
            each{member} = Relu(track{member})
            found{member} = Mul(each{member}, seen)
            sum{member} = ReduceSum <keepdims = 0> (found{member}, track_axis)
            whole{member} = Div(sum{member}, scale)
            {dense_graph(f"jet{member}", f"whole{member}", _LAYERS)}""")
    shape = f"{deepsets.TRACKS}, {deepsets.QUANTITIES + 1}"
    members = ", ".join(f"jet{member}" for member in range(deepsets.MEMBERS))
    model = graph(
        f"""deepsets (float[N, {shape}] tracks) => (float[N, 3] probabilities) {{
            own = Slice(tracks, first, last, axis)
            seen = Slice(tracks, last, end, axis)
            shifted = Sub(own, mean)
            scaled = Div(shifted, spread)
            {"".join(lines)}
            scores = Mean({members})
            probabilities = Softmax <axis = 1> (scores)
        }}""",
        first=np.array([0]),
        last=np.array([deepsets.QUANTITIES]),
        end=np.array([deepsets.QUANTITIES + 1]),
        axis=np.array([2]),
        track_axis=np.array([1]),
        scale=np.float32(deepsets.SCALE),
        **constants,
    )
    return files(
        model,
        """task = "jets"
batch = "events"

[inputs]
tracks = { source = "features/tracks", dtype = "float32" }

[outputs]
probabilities = ["prob_light", "prob_c", "prob_b"]
""",
    )
