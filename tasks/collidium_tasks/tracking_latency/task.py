"""The task as the platform sees it: tracking, and the time that the submitter measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import pyarrow as pa

from collidium.contracts.task import Block, Card, Draws, Problem, Reconstruction, Tables, Task
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.baselines import helix, naive
from collidium_tasks.tracking_latency import baselines
from collidium_tasks.tracking_latency import tally as tallying
from collidium_tasks.tracking_latency.card import CARD, EFFICIENCY, LEAST_SECONDS
from collidium_tasks.tracking_latency.tally import TimedTally

_TRACKING: Final = TrackingTask()


class TrackingLatencyTask(Task):
    """Scores tracks as the tracking task does; the engine sees to it that an event has one time."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return _TRACKING.prepare(tables)

    def check(self, block: Block) -> list[Problem]:
        return _TRACKING.check(block)

    def score(self, block: Block) -> TimedTally:
        return tallying.timed(_TRACKING.score(block), block.predictions)

    def merge(self, tallies: Sequence[TimedTally]) -> TimedTally:
        tracks = _TRACKING.merge([tally.tracks for tally in tallies])
        return TimedTally(tracks, tallying.together([tally.time for tally in tallies]))

    def metrics(self, tally: TimedTally) -> dict[str, float]:
        return tallying.metrics(_TRACKING.metrics(tally.tracks)[EFFICIENCY], tally.time)

    def resample(self, tallies: Sequence[TimedTally], draws: Draws) -> list[dict[str, float]]:
        tracking = _TRACKING.resample([tally.tracks for tally in tallies], draws)
        return [
            tallying.metrics(metrics[EFFICIENCY], tallying.together([tallies[group].time for group in draw]))
            for metrics, draw in zip(tracking, draws, strict=True)
        ]

    def warnings(self, tally: TimedTally) -> list[str]:
        left_out = tally.time.events - tally.time.timed
        warnings = [f"{left_out} events have no row: the time of all events is not known"] if left_out else []
        return [*warnings, *_TRACKING.warnings(tally.tracks)]

    def oracle(self, truth: Tables) -> pa.Table:
        return baselines.with_seconds(_TRACKING.oracle(truth), LEAST_SECONDS)

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"naive": baselines.Timed(naive.reconstruct), "helix": baselines.Timed(helix.reconstruct)}
