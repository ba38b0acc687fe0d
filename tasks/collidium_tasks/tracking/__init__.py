"""The tracking benchmark: group the hits of an event into the tracks of its charged particles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from collidium.contracts.task import (
    Block,
    Card,
    Column,
    Draws,
    EventRange,
    Metric,
    Problem,
    Reconstruction,
    Tables,
    Task,
)
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import tally as tallying
from collidium_tasks.tracking.baselines import helix, naive
from collidium_tasks.tracking.checks import problems_of
from collidium_tasks.tracking.events import events_of
from collidium_tasks.tracking.matching import Matcher
from collidium_tasks.tracking.tally import EventTallies
from collidium_tasks.tracking.truth import prepare

CARD = Card(
    name="tracking",
    title="Charged-particle tracking",
    description=(
        "Group the tracker hits of each event into tracks, one for each charged particle. "
        "A track is correct when one particle owns at least half of its hits and has at least half of "
        "its own hits in it. Hits given track_id -1, and hits not submitted, belong to no track."
    ),
    dataset="ttbar_pu200",
    eval_events=EventRange(90_000, 100_000),
    inputs=("tracker_hits",),
    columns=(
        Column(name="event_id", kind="integer", description="Event of the hit."),
        Column(name="hit_id", kind="integer", description="The hit within its event; each hit at most once."),
        Column(
            name="track_id",
            kind="integer",
            description="Track of the hit, 0 or more; -1 for a hit without a track.",
        ),
    ),
    left_out="Hits that are not submitted, and hits with track_id -1, belong to no track: their weight is "
    "lost.",
    truth_sources=("tracker_hits", "particles"),
    rows_of="hits",
    metrics=(
        Metric(
            name="trackml_weighted_efficiency",
            higher_is_better=True,
            description="Weight of the hits that correct tracks share with their particle, over the weight "
            "of all hits that a particle left. A hit weighs what the column weight of tracker_hits says; "
            "1 where the dataset has none.",
            formula="weight of the dominating particle's hits in correct tracks / weight of all hits but "
            "noise; a particle dominates a track of which it owns 50% of the hits or more, and the track is "
            "correct when that is 50% of the particle's own hits or more",
            source="after S. Amrouche et al., The Tracking Machine Learning challenge: Accuracy phase, "
            "arXiv:1904.06778",
            bounds=(0, 1),
        ),
        Metric(
            name="fake_rate",
            higher_is_better=False,
            description="Fraction of tracks of which no particle owns at least half the hits.",
            formula="tracks that no particle dominates / tracks",
            bounds=(0, 1),
        ),
        Metric(
            name="duplicate_rate",
            higher_is_better=False,
            description="Fraction of particles that dominate more than one track.",
            formula="particles that dominate more than one track / particles that have a hit",
            bounds=(0, 1),
        ),
        Metric(
            name="physics_eff_pt1",
            higher_is_better=True,
            description="Fraction of primary particles with transverse momentum above 1 GeV that dominate a "
            "track which holds at least 3 of their hits.",
            formula="primary particles with pt > 1 GeV that dominate a track with at least 3 of their hits "
            "(all, where they have fewer) / primary particles with pt > 1 GeV that have a hit; no other cut; "
            "where the dataset has no flag primary, all particles count as primary",
            bounds=(0, 1),
        ),
    ),
)


class TrackingTask(Task):
    """Scores the assignment of hits to tracks by the double-majority rule."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return prepare(tables)

    def check(self, block: Block) -> list[Problem]:
        return problems_of(events_of(block))

    def score(self, block: Block) -> EventTallies:
        matcher = Matcher()
        return tallying.collect(matcher.match(event) for event in events_of(block))

    def merge(self, tallies: Sequence[EventTallies]) -> EventTallies:
        return tallying.merge(tallies)

    def metrics(self, tally: EventTallies) -> dict[str, float]:
        return tallying.metrics(tally)

    def resample(self, tallies: Sequence[EventTallies], draws: Draws) -> list[dict[str, float]]:
        return tallying.resample(tallies, draws)

    def warnings(self, tally: EventTallies) -> list[str]:
        return tallying.warnings(tally)

    def oracle(self, truth: Tables) -> pa.Table:
        hits = truth["hits"]
        track_id = np.asarray(hits.column("particle"), dtype=np.int64) - 1  # noise, 0, belongs to no track
        return hits.select(["event_id", "hit_id"]).append_column("track_id", pa.array(track_id))

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"naive": naive.reconstruct, "helix": helix.reconstruct}


__all__ = ["TrackingTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingTask()]
