"""The tracking benchmark for small methods: efficiency and number of parameters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.model import ModelInterface
from collidium.contracts.task import (
    Block,
    Card,
    Column,
    Curve,
    Draws,
    Metric,
    Reconstruction,
    Tables,
    Task,
)
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import MODELS, TrackingTask, TracksTask
from collidium_tasks.tracking import baselines as of_tracking
from collidium_tasks.tracking.baselines import edges as edge_finder
from collidium_tasks.tracking.baselines import helix as helix_finder
from collidium_tasks.tracking.tally import EventTallies

TRACKING: Final = TrackingTask.card

EFFICIENCY: Final = TRACKING.primary_metric.name

#: Maximum number of parameters of each tier; the last tier has none.
TIERS: Final = (10_000, 100_000, 1_000_000)

_NO_ROW: Final = "no row was submitted for the scored events"

CARD: Final = replace(
    TRACKING,
    name="tracking_small",
    title="Tracking with few parameters",
    description=(
        f"{TRACKING.description} The fewer parameters the better: report in n_params how many numbers of "
        "your method were fitted to data or chosen (weights, biases, cuts, bin widths, resolutions), at "
        "least 1. Constants of nature and values computed from the event itself do not count. The "
        "leaderboard ranks by efficiency and marks the Pareto front of efficiency and number of parameters."
    ),
    columns=(
        *TRACKING.columns,
        Column(
            name="n_params",
            kind="integer",
            description="Parameters of the method, the same in every row.",
            bounds=(1, inf),
            one_per="file",
        ),
    ),
    metrics=(
        replace(TRACKING.primary_metric, reward=30),
        Metric(
            name="n_params",
            title="Parameters",
            higher_is_better=False,
            description="Parameters of the method, as counted by the submitter.",
            formula="n_params",
            bounds=(1, inf),
            self_reported=True,
            missing_when=_NO_ROW,
        ),
        Metric(
            name="tier",
            title="Size tier",
            higher_is_better=False,
            description="1 for up to 10^4 parameters, 2 for up to 10^5, 3 for up to 10^6, 4 above.",
            formula="1 + how many of 10^4, 10^5 and 10^6 are below n_params",
            bounds=(1, len(TIERS) + 1),
            self_reported=True,
            missing_when=_NO_ROW,
        ),
    ),
    pareto=(EFFICIENCY, "n_params"),
    ranks_measured=True,
)


#: Parameters of `naive`: two numbers of bins, their range, and the minimum number of hits of a track.
NAIVE: Final = 4
#: Parameters of `helix`: positions of layers (29), their depths, limits and resolutions (30), searches (10),
#: cuts (10), scattering (2) and the magnetic field (1).
HELIX: Final = 82
#: Parameters of `edges`, without `helix` and the weights: two searches (10), limits of pairs and links (4).
EDGES: Final = 14


def naive(tables: Tables) -> pa.Table:
    """Hits in the same direction from the origin form a track."""
    return with_parameters(of_tracking.naive(tables), NAIVE)


def helix(tables: Tables) -> pa.Table:
    """Hits along helices form a track."""
    return with_parameters(helix_finder.reconstruct(tables), HELIX)


def edges(tables: Tables) -> pa.Table:
    """The tracks of `helix`, and chains of hits that a network of 1,601 weights links."""
    learned = sum(array.size for array in edge_finder.weights().values())
    return with_parameters(edge_finder.reconstruct(tables), HELIX + EDGES + learned)


def with_parameters(predictions: pa.Table, n_params: int) -> pa.Table:
    """Add ``n_params`` to predictions of the tracking task."""
    return predictions.append_column("n_params", pa.array(np.full(predictions.num_rows, n_params, np.int64)))


_TRACKING: Final = TrackingTask()


@dataclass(frozen=True, slots=True)
class SmallTally:
    """The tally of the tracking task, and n_params; None without a row."""

    tracks: EventTallies
    n_params: int | None


class TrackingSmallTask(TracksTask):
    """Scores tracks as the tracking task does; the engine checks that n_params is the same in all rows."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "2"

    def score(self, block: Block) -> SmallTally:
        column = block.predictions.column("n_params")
        return SmallTally(_TRACKING.score(block), column[0].as_py() if len(column) else None)

    def merge(self, tallies: Sequence[SmallTally]) -> SmallTally:
        return SmallTally(_TRACKING.merge([tally.tracks for tally in tallies]), _n_params(tallies))

    def metrics(self, tally: SmallTally) -> dict[str, float]:
        return _metrics(_TRACKING.metrics(tally.tracks), tally.n_params)

    def resample(self, tallies: Sequence[SmallTally], draws: Draws) -> list[dict[str, float]]:
        tracking = _TRACKING.resample([tally.tracks for tally in tallies], draws)
        return [
            _metrics(metrics, _n_params([tallies[group] for group in draw]))
            for metrics, draw in zip(tracking, draws, strict=True)
        ]

    def curves(self, tally: SmallTally) -> list[Curve]:
        return _TRACKING.curves(tally.tracks)

    def warnings(self, tally: SmallTally) -> list[str]:
        return _TRACKING.warnings(tally.tracks)

    def model_interface(self) -> ModelInterface:
        return replace(MODELS, measured={"n_params": "parameters"})

    def oracle(self, truth: Tables) -> pa.Table:
        return with_parameters(_TRACKING.oracle(truth), 1)

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"naive": naive, "helix": helix, "edges": edges}


def _n_params(tallies: Sequence[SmallTally]) -> int | None:
    """Return n_params, which is equal in all rows: the maximum, which does not depend on the order."""
    return max((tally.n_params for tally in tallies if tally.n_params is not None), default=None)


def _metrics(tracking: Mapping[str, float], n_params: int | None) -> dict[str, float]:
    metrics = {EFFICIENCY: tracking[EFFICIENCY]}
    if n_params is not None:
        metrics |= {"n_params": float(n_params), "tier": float(bisect_left(TIERS, n_params) + 1)}
    return metrics


__all__ = ["TrackingSmallTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingSmallTask()]
