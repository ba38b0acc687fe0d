"""Scores of the shipped tasks on small synthetic events, kept in ``reference_scores.json``::

    python -m tests.tasks.reference_scores

writes the file. Leaderboards compare scores of one ``version`` of a task only, so a change of a metric needs
a new version. The file shows reviewers how the change affects the scores.

Predictions are those of each task's oracle, degraded with random numbers.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tests.core.datasets import events as hosted
from tests.tasks.anomaly import events as mix
from tests.tasks.jets import events as tagged

import collidium
from collidium import plugins
from collidium.contracts.task import Task
from collidium.datasets.writing import write_dataset

FILE: Final = Path(__file__).with_suffix(".json")
COMMAND: Final = "python -m tests.tasks.reference_scores"

#: Significant digits of the numbers in the file.
_DIGITS: Final = 9
_CHANNELS: Final = (*("ttbar", "zmumu", "jets") * 2, "hidden_valley", "higgs_portal", "susy_gmsb", "zprime")
_FLAVOURS: Final = ((5, 0, 0, 4), (5, 4, 0), (), (0, 4, 5, 4, 0))


def shipped_tasks() -> dict[str, Task]:
    """The tasks of the platform's own distribution, by name."""
    tasks = plugins.load().tasks()
    return {name: task for name, task in tasks.things.items() if tasks.distributions[name] == "collidium"}


def reference(task: Task) -> dict[str, Any]:
    """The version of a task, and its metrics with standard errors, as a server computes them."""
    tables = _truth_sources(task)
    oracle = task.oracle(task.prepare(tables))
    assert oracle is not None, f"{task.card.name} has no oracle to degrade"
    ids = tables[task.card.truth_sources[0]].column("event_id").to_pylist()
    with tempfile.TemporaryDirectory() as directory:
        write_dataset(Path(directory), "synthetic", [tables], events_per_shard=len(ids))
        events = f"{ids[0]}:{ids[-1] + 1}"
        made = collidium.score(task, _degraded(oracle), truth_from=directory, events=events)
    return {
        "version": made.scorer_version,
        "scores": {name: _rounded(score) for name, score in made.scores.items()},
        "standard_errors": {name: _rounded(error) for name, error in made.uncertainties.items()},
    }


def _truth_sources(task: Task) -> dict[str, pa.Table]:
    names = task.card.truth_sources
    if names == ("channels",):
        return {"channels": mix.tables(_CHANNELS * 60)["channels"]}
    if names == ("jets",):
        return {"jets": tagged.tables(_FLAVOURS * 100)["jets"]}
    tables = hosted.tables_of(range(20))
    return {name: tables[name] for name in names}


def _degraded(oracle: pa.Table) -> pa.Table:
    """Predictions of an oracle with some rows missing and every predicted column wrong in part."""
    random = np.random.default_rng(1)
    oracle = oracle.take(np.flatnonzero(random.random(oracle.num_rows) < 0.995))
    columns = {name: np.asarray(oracle[name]) for name in oracle.column_names}
    events, rows = columns["event_id"], oracle.num_rows
    if "track_id" in columns:
        # The later the event, the more hits are of another track; and some tracks are split.
        tracks = columns["track_id"]
        swapped = np.where(random.random(rows) < events / 60, random.permutation(tracks), tracks)
        columns["track_id"] = np.where(random.random(rows) < 0.2, swapped + 10_000, swapped)
    if "seconds" in columns:
        columns["seconds"] = 0.01 * (1 + events % 3)
    if "n_params" in columns:
        columns["n_params"] = np.full(rows, 20_000)
    if "anomaly_score" in columns:
        columns["anomaly_score"] = columns["anomaly_score"] + random.normal(size=rows)
    if "prob_b" in columns:
        names = ("prob_b", "prob_c", "prob_light")
        weights = np.stack([columns[name] for name in names]) + random.exponential(1.0, (3, rows))
        columns |= zip(names, weights / weights.sum(axis=0), strict=True)
    if "seconds_local" in columns:
        columns |= {"seconds_local": np.array([0.25]), "seconds_streaming": np.array([2.0])}
    return pa.table(columns)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


if __name__ == "__main__":
    references = {name: reference(task) for name, task in sorted(shipped_tasks().items())}
    FILE.write_text(json.dumps(references, indent=2) + "\n")
