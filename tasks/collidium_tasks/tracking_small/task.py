"""The task as the platform sees it: tracking, and a number that the submitter says of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from collidium.contracts.task import Block, Card, Draws, Problem, Reconstruction, Tables, Task
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.tally import EventTallies
from collidium_tasks.tracking_small import baselines
from collidium_tasks.tracking_small.card import CARD, EFFICIENCY, TIERS

_TRACKING: Final = TrackingTask()


@dataclass(frozen=True, slots=True)
class SmallTally:
    """What tracking counts, and the parameters; None without a row."""

    tracks: EventTallies
    n_params: int | None


class TrackingSmallTask(Task):
    """Scores tracks as the tracking task does; the engine sees to it that n_params is one number."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return _TRACKING.prepare(tables)

    def check(self, block: Block) -> list[Problem]:
        return _TRACKING.check(block)

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

    def warnings(self, tally: SmallTally) -> list[str]:
        return _TRACKING.warnings(tally.tracks)

    def oracle(self, truth: Tables) -> pa.Table:
        return baselines.with_parameters(_TRACKING.oracle(truth), 1)

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"naive": baselines.naive, "helix": baselines.helix}


def _n_params(tallies: Sequence[SmallTally]) -> int | None:
    """The parameters, which are the same in all rows; in whatever order, where tallies were made by hand."""
    return max((tally.n_params for tally in tallies if tally.n_params is not None), default=None)


def _metrics(tracking: Mapping[str, float], n_params: int | None) -> dict[str, float]:
    metrics = {EFFICIENCY: tracking[EFFICIENCY]}
    if n_params is not None:
        metrics |= {"n_params": float(n_params), "tier": float(bisect_left(TIERS, n_params) + 1)}
    return metrics
