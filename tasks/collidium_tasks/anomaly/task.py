"""The task as the platform sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block, Card, Draws, Problem, Reconstruction, Tables, Task
from collidium_tasks.anomaly import truth
from collidium_tasks.anomaly.baselines import energy, forest
from collidium_tasks.anomaly.card import CARD, FALSE_POSITIVE_RATE
from collidium_tasks.learning import can_learn
from collidium_tasks.ranking import Roc, Scores, resampled

#: Rows shown for each kind of problem.
EXAMPLES: Final = 5

Rows = npt.NDArray[np.bool_]


class AnomalyTask(Task):
    """Scores one number per event."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return truth.prepare(tables)

    def check(self, block: Block) -> list[Problem]:
        events = _events(block.predictions)
        again = np.zeros(len(events), np.bool_)
        again[1:] = events[1:] == events[:-1]
        unknown = ~np.isin(events, _events(block.truth["channels"]))
        found = {
            "duplicate-row": ("The event was submitted before; each event_id may stand once.", again),
            "unknown-event": ("There is no event of this event_id to be scored.", unknown & ~again),
        }
        return [_problem(code, detail, events, rows) for code, (detail, rows) in found.items() if rows.any()]

    def score(self, block: Block) -> Scores:
        """The ranking of the block's events; those that were not submitted have no score."""
        channels = block.truth["channels"]
        signal = np.asarray(channels.column("signal"))
        scored = signal[np.searchsorted(_events(channels), _events(block.predictions))]
        signals = int(np.count_nonzero(scored))
        missing = int(np.count_nonzero(signal)) - signals
        return Scores.of(
            np.asarray(block.predictions.column("anomaly_score")),
            scored,
            unscored_signal=missing,
            unscored_background=len(signal) - len(scored) - missing,
        )

    def merge(self, tallies: Sequence[Scores]) -> Scores:
        return Scores.merged(tallies)

    def metrics(self, tally: Scores) -> dict[str, float]:
        return _metrics(tally)

    def resample(self, tallies: Sequence[Scores], draws: Draws) -> list[dict[str, float]]:
        return [_metrics(curve) for curve in resampled(tallies, draws)]

    def oracle(self, truth: Tables) -> pa.Table:
        channels = truth["channels"]
        score = np.asarray(channels.column("signal")).astype(np.float32)
        return channels.select(["event_id"]).append_column("anomaly_score", pa.array(score))

    def baselines(self) -> Mapping[str, Reconstruction]:
        plain: dict[str, Reconstruction] = {"energy": energy.reconstruct}
        return plain | {"forest": forest.reconstruct} if can_learn() else plain


def _metrics(curve: Roc) -> dict[str, float]:
    return {
        "auroc": curve.auc(),
        "signal_efficiency_fpr1": curve.signal_efficiency(FALSE_POSITIVE_RATE),
    }


def _events(table: pa.Table) -> npt.NDArray[np.int64]:
    return np.asarray(table.column("event_id")).astype(np.int64, copy=False)


def _problem(code: str, detail: str, events: npt.NDArray[Any], rows: Rows) -> Problem:
    shown = events[rows][:EXAMPLES].tolist()
    examples = tuple({"event_id": event} for event in shown)
    return Problem(code, detail, "event_id", shown[0], int(np.count_nonzero(rows)), examples)
