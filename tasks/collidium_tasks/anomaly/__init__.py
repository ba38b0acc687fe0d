"""The anomaly benchmark: find events beyond the Standard Model in a blinded mix.

:mod:`.tally` has the card, the scores by channel and what the metrics make of them, with
:mod:`collidium_tasks.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.model import Feature, ModelInterface
from collidium.contracts.tables import list_lengths
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
    UnusableTruth,
)
from collidium.hookspecs import hookimpl
from collidium_tasks.anomaly import learned
from collidium_tasks.anomaly import tally as tallying
from collidium_tasks.anomaly.baselines import NAMES, REFERENCE, energy, features, forest
from collidium_tasks.anomaly.learned import MIXTURE, WEAK, mixture, weak
from collidium_tasks.anomaly.tally import CARD, SIGNALS, AnomalyTally
from collidium_tasks.common import can_learn, not_learned, rows_problem, shipped_model

STANDARD_MODEL: Final = frozenset({"ttbar", "ggf", "dihiggs", "diphoton", "jets", "zmumu", "zee"})
BEYOND: Final = frozenset(SIGNALS)
MODELS: Final = ModelInterface(
    inputs={
        "tracker_hits": ("x", "y", "z", "volume_id", "layer_id", "surface_id", "detector"),
        "calo_hits": ("detector", "x", "y", "z", "total_energy"),
        "tracks": ("d0", "z0", "phi", "theta", "qop"),
    },
    outputs=("anomaly_score",),
    features={
        "event": Feature(
            description=f"ln(1 + value) of {', '.join(NAMES)}; GeV and mm.",
            shape=(len(NAMES),),
            tables=("tracker_hits", "calo_hits", "tracks"),
            compute=features,
        )
    },
)


def prepare(tables: Tables) -> dict[str, pa.Table]:
    """Return the truth: ``event_id``, and ``signal``, which is 0, or 1 plus an index of SIGNALS.

    Table ``channels`` needs ``channel``, a list with one name per event, as ``collidium datasets mix`` writes
    it. Raises :class:`~collidium.contracts.task.UnusableTruth` otherwise, and for unknown channels and
    repeated events.
    """
    table = tables["channels"]
    if "channel" not in table.column_names:
        raise UnusableTruth("table channels lacks channel")
    events = np.asarray(table.column("event_id"))
    if np.any(np.diff(events.astype(np.int64)) <= 0):
        raise UnusableTruth("table channels: event ids must increase, without repetitions")
    not_one = np.flatnonzero(list_lengths(table, "channel") != 1)
    if len(not_one):
        raise UnusableTruth(f"table channels: event {events[not_one[0]]} must have one channel")
    channel = pc.list_flatten(table.column("channel"))
    names = set(channel.unique().to_pylist())
    if unknown := names - STANDARD_MODEL - BEYOND:
        listed = ", ".join(sorted(map(str, unknown)))
        raise UnusableTruth(f"table channels: {listed}: unknown whether Standard Model or signal")
    places = pc.index_in(channel, pa.array(SIGNALS, channel.type))
    signal = np.asarray(pc.add(places.fill_null(-1), 1)).astype(np.uint8)
    return {"channels": pa.table({"event_id": pa.array(events, pa.uint32()), "signal": signal})}


class AnomalyTask(Task):
    """Scores one number per event."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "2"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return prepare(tables)

    def check(self, block: Block) -> list[Problem]:
        events = _events(block.predictions)
        again = np.zeros(len(events), np.bool_)
        again[1:] = events[1:] == events[:-1]
        unknown = ~np.isin(events, _events(block.truth["channels"]))
        found = {
            "duplicate-row": ("The event was submitted before; each event_id may occur once.", again),
            "unknown-event": ("No event with this event_id is scored.", unknown & ~again),
        }
        return [
            rows_problem(block.predictions, rows, code, "event_id", detail, ["event_id"])
            for code, (detail, rows) in found.items()
            if rows.any()
        ]

    def score(self, block: Block) -> AnomalyTally:
        """Return the scores of the block's events; events that were not submitted count as unscored."""
        channels = block.truth["channels"]
        signal = np.asarray(channels.column("signal"))
        kind = signal[np.searchsorted(_events(channels), _events(block.predictions))]
        scores = np.asarray(block.predictions.column("anomaly_score"))
        kinds = range(len(SIGNALS) + 1)
        missing = np.bincount(signal, minlength=len(kinds)) - np.bincount(kind, minlength=len(kinds))
        return AnomalyTally.of([scores[kind == one] for one in kinds], missing.tolist())

    def merge(self, tallies: Sequence[AnomalyTally]) -> AnomalyTally:
        return tallying.merge(tallies)

    def metrics(self, tally: AnomalyTally) -> dict[str, float]:
        return tallying.metrics(tally)

    def counts(self, tally: AnomalyTally) -> dict[str, Counts]:
        return tallying.counts(tally)

    def sample_sizes(self, tally: AnomalyTally) -> dict[str, int]:
        return tallying.sample_sizes(tally)

    def resample(self, tallies: Sequence[AnomalyTally], draws: Draws) -> list[dict[str, float]]:
        return tallying.resample(tallies, draws)

    def curves(self, tally: AnomalyTally) -> list[Curve]:
        return tallying.curves(tally)

    def model_interface(self) -> ModelInterface:
        return MODELS

    def model_examples(self) -> Mapping[str, Callable[[], Mapping[str, bytes]]]:
        return {"mixture": learned.mixture_model, "weak": learned.weak_model}

    def oracle(self, truth: Tables) -> pa.Table:
        channels = truth["channels"]
        score = (np.asarray(channels.column("signal")) > 0).astype(np.float32)
        return channels.select(["event_id"]).append_column("anomaly_score", pa.array(score))

    def baselines(self) -> Mapping[str, Reconstruction]:
        learned = {"forest": forest} if can_learn() else {}
        return {"energy": energy, **learned, "mixture": mixture, "weak": weak}

    def missing_baselines(self) -> Mapping[str, str]:
        return not_learned("forest")

    def model_files(self, baseline: str) -> dict[str, bytes]:
        files = {"forest": REFERENCE, "mixture": MIXTURE, "weak": WEAK}
        return shipped_model(__name__ + ".baselines", files, baseline)


def _events(table: pa.Table) -> npt.NDArray[np.int64]:
    return np.asarray(table.column("event_id")).astype(np.int64, copy=False)


__all__ = ["AnomalyTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [AnomalyTask()]
