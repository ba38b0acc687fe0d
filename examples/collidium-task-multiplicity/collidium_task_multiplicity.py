"""How many particles crossed the tracker? A complete benchmark task in one file."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import flatten, list_lengths
from collidium.contracts.task import (
    Block,
    Card,
    Column,
    EventRange,
    Metric,
    Problem,
    Reconstruction,
    Tables,
    Task,
)
from collidium.hookspecs import hookimpl

Counts = tuple[int, int, int]


class Multiplicity(Task):
    """Scores one number per event: the particles that left at least three hits."""

    card = Card(
        name="multiplicity",
        title="Particle multiplicity",
        description="Count from the tracker hits how many particles left at least three hits in each event.",
        dataset="ttbar_pu0",
        eval_events=EventRange(90_000, 100_000),
        inputs=("tracker_hits",),
        columns=(
            Column(name="event_id", kind="integer", description="Each event once."),
            Column(name="particles", kind="integer", description="Particles with at least three hits."),
        ),
        truth_sources=("tracker_hits",),
        rows_of="events",
        metrics=(
            Metric(
                name="within_ten_percent",
                higher_is_better=True,
                description="Fraction of events whose number is right to 10%.",
                reward=5,
            ),
            Metric(
                name="mean_error",
                higher_is_better=False,
                description="Mean distance between the predicted and the true number.",
            ),
        ),
    )
    version = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        hits = flatten(tables["tracker_hits"], ["particle_id"])
        hits = hits.filter(pc.field("particle_id") != 0)  # 0 is noise
        tracks = hits.group_by(["event_id", "particle_id"]).aggregate([([], "count_all")])
        crossed = np.sort(tracks.filter(pc.field("count_all") >= 3)["event_id"])
        events = tables["tracker_hits"]["event_id"].cast(pa.uint32())
        particles = np.searchsorted(crossed, events, "right") - np.searchsorted(crossed, events, "left")
        return {"events": pa.table({"event_id": events, "particles": particles})}

    def check(self, block: Block) -> list[Problem]:
        events = np.asarray(block.predictions["event_id"])
        particles = np.asarray(block.predictions["particles"])
        problems = []
        if repeated := int(np.count_nonzero(events[1:] == events[:-1])):
            problems.append(Problem("duplicate-row", "Give each event once.", "event_id", count=repeated))
        if negative := int(np.count_nonzero(particles < 0)):
            problems.append(Problem("negative", "Give 0 or more.", "particles", count=negative))
        return problems

    def score(self, block: Block) -> Counts:
        events = np.asarray(block.truth["events"]["event_id"], dtype=np.int64)
        true = np.asarray(block.truth["events"]["particles"], dtype=np.int64)
        predicted = np.zeros_like(true)  # an event left out counts as 0 particles
        answered = np.asarray(block.predictions["event_id"], dtype=np.int64)
        known = np.isin(answered, events)
        rows = np.searchsorted(events, answered[known])
        predicted[rows] = np.asarray(block.predictions["particles"])[known]
        error = np.abs(predicted - true)
        return len(events), int(np.count_nonzero(10 * error <= true)), int(error.sum())

    def merge(self, tallies: Sequence[Counts]) -> Counts:
        events, close, error = (sum(counts) for counts in zip((0, 0, 0), *tallies, strict=True))
        return events, close, error

    def metrics(self, tally: Counts) -> dict[str, float]:
        events, close, error = tally
        return {"within_ten_percent": close / max(events, 1), "mean_error": error / max(events, 1)}

    def baselines(self) -> dict[str, Reconstruction]:
        return {"ten_hits_each": ten_hits_each}


def ten_hits_each(tables: Tables) -> pa.Table:
    """The floor: a particle leaves about ten hits."""
    hits = list_lengths(tables["tracker_hits"], "x")
    return pa.table({"event_id": tables["tracker_hits"]["event_id"], "particles": hits // 10})


@hookimpl
def collidium_tasks() -> list[Task]:
    return [Multiplicity()]
