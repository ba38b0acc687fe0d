"""The tracking benchmark: group the hits of an event into the tracks of its charged particles.

* :mod:`.card`: the columns, the metrics with their formulas and bounds, and problems of rows.
* :mod:`.truth`: the truth tables, with hit weights as in TrackML.
* :mod:`.events`: a block as arrays, event by event.
* :mod:`.matching`: the double-majority rule; it computes the counts of an event (``EventCounts``).
* :mod:`.tally`: the counts of all events (``EVENT``), and the metrics, which are ratios of them (``RATIOS``).
* :mod:`.bins`: efficiencies and rates in bins.

The platform computes standard errors, in :mod:`collidium.scoring.uncertainty`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, get_args

import numpy as np
import pyarrow as pa

from collidium.contracts.model import ModelInterface
from collidium.contracts.task import (
    Block,
    Card,
    Counts,
    Curve,
    Draws,
    Problem,
    Reconstruction,
    Tables,
    Task,
)
from collidium.hookspecs import hookimpl
from collidium_tasks.common import shipped_model
from collidium_tasks.tracking import baselines, bins
from collidium_tasks.tracking import tally as tallying
from collidium_tasks.tracking.baselines import edges, helix, naive
from collidium_tasks.tracking.card import CARD, problems_of
from collidium_tasks.tracking.events import events_of
from collidium_tasks.tracking.matching import Matcher
from collidium_tasks.tracking.tally import EventTallies
from collidium_tasks.tracking.truth import HitWeights, prepare

#: Models read hits and return track ids, or edges between hits.
MODELS: Final = ModelInterface(
    inputs={"tracker_hits": ("x", "y", "z", "volume_id", "layer_id", "surface_id", "detector")},
    rows="tracker_hits",
    key=("hit_id", "hit_id"),
    outputs=("track_id",),
    ids=frozenset({"track_id"}),
    postprocess=("components",),
)


class TracksTask(Task):
    """Base class of tasks whose predictions are tracks: their truth, checks and models."""

    truth_options: ClassVar[Mapping[str, Sequence[str]]] = {"hits": get_args(HitWeights)}

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return prepare(tables)

    def prepare_with(self, tables: Tables, options: Mapping[str, str]) -> dict[str, pa.Table]:
        return prepare(tables, "uniform" if options.get("hits") == "uniform" else "weighted")

    def check(self, block: Block) -> list[Problem]:
        return problems_of(events_of(block))

    def model_interface(self) -> ModelInterface:
        return MODELS

    def model_examples(self) -> Mapping[str, Callable[[], Mapping[str, bytes]]]:
        return baselines.examples(self.card.name)

    def model_files(self, baseline: str) -> dict[str, bytes]:
        return shipped_model(edges.__name__, {"edges": edges.WEIGHTS}, baseline)


class TrackingTask(TracksTask):
    """Scores the assignment of hits to tracks by the double-majority rule."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "2"

    def score(self, block: Block) -> EventTallies:
        matcher = Matcher()
        return tallying.collect(matcher.match(event) for event in events_of(block))

    def merge(self, tallies: Sequence[EventTallies]) -> EventTallies:
        return tallying.merge(tallies)

    def metrics(self, tally: EventTallies) -> dict[str, float]:
        return tallying.metrics(tally)

    def resample(self, tallies: Sequence[EventTallies], draws: Draws) -> list[dict[str, float]]:
        return tallying.resample(tallies, draws)

    def counts(self, tally: EventTallies) -> dict[str, Counts]:
        return tallying.counts(tally)

    def curves(self, tally: EventTallies) -> list[Curve]:
        return bins.curves(tally)

    def warnings(self, tally: EventTallies) -> list[str]:
        return tallying.warnings(tally)

    def oracle(self, truth: Tables) -> pa.Table:
        hits = truth["hits"]
        track_id = np.asarray(hits.column("particle"), dtype=np.int64) - 1  # noise, 0, belongs to no track
        return hits.select(["event_id", "hit_id"]).append_column("track_id", pa.array(track_id))

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"naive": naive, "helix": helix.reconstruct, "edges": edges.reconstruct}


__all__ = ["TrackingTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingTask()]
