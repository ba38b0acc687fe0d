"""The jets benchmark: identify jets of b, c and light quarks.

:mod:`.card` has columns, metrics and truth, :mod:`.tally` the scores by flavour and what the metrics make of
them, with :mod:`collidium_tasks.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from collidium.contracts.model import ModelInterface
from collidium.contracts.task import Block, Card, Curve, Draws, Problem, Reconstruction, Tables, Task
from collidium.hookspecs import hookimpl
from collidium_tasks.common import can_learn, not_learned, shipped_model
from collidium_tasks.jets import examples
from collidium_tasks.jets import tally as tallying
from collidium_tasks.jets.baselines import deepsets, impact, trees
from collidium_tasks.jets.card import BOTTOM, CARD, CHARM, LIGHT, PROBABILITIES, prepare, problems_of
from collidium_tasks.jets.examples import MODELS
from collidium_tasks.jets.tally import JetsTally


class JetsTask(Task):
    """Scores three probabilities per jet."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "2"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return prepare(tables)

    def check(self, block: Block) -> list[Problem]:
        return problems_of(block)

    def score(self, block: Block) -> JetsTally:
        return tallying.collect(block)

    def merge(self, tallies: Sequence[JetsTally]) -> JetsTally:
        return tallying.merge(tallies)

    def metrics(self, tally: JetsTally) -> dict[str, float]:
        return tallying.metrics(tally)

    def resample(self, tallies: Sequence[JetsTally], draws: Draws) -> list[dict[str, float]]:
        return tallying.resample(tallies, draws)

    def curves(self, tally: JetsTally) -> list[Curve]:
        return tallying.curves(tally)

    def warnings(self, tally: JetsTally) -> list[str]:
        return tallying.warnings(tally)

    def model_interface(self) -> ModelInterface:
        return MODELS

    def model_examples(self) -> Mapping[str, Callable[[], Mapping[str, bytes]]]:
        return {"trees": examples.trees_model, "deepsets": examples.deepsets_model}

    def oracle(self, truth: Tables) -> pa.Table:
        jets = truth["jets"]
        flavour = np.asarray(jets.column("flavour"))
        predictions = jets.select(["event_id", "jet_id"])
        for name, code in zip(PROBABILITIES, (BOTTOM, CHARM, LIGHT), strict=True):
            predictions = predictions.append_column(name, pa.array((flavour == code).astype(np.float32)))
        return predictions

    def baselines(self) -> Mapping[str, Reconstruction]:
        learned = {"trees": trees.reconstruct} if can_learn() else {}
        return {"impact": impact, **learned, "deepsets": deepsets.reconstruct}

    def missing_baselines(self) -> Mapping[str, str]:
        return not_learned("trees")

    def model_files(self, baseline: str) -> dict[str, bytes]:
        return shipped_model(
            trees.__name__, {"trees": trees.TRAINING, "deepsets": deepsets.WEIGHTS}, baseline
        )


__all__ = ["JetsTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [JetsTask()]
