"""The contract of a benchmark task."""

from __future__ import annotations

import pyarrow as pa

from collidium.contracts.task import Tables, Task
from collidium.testing.conformance.promise import Nonconforming


def check_task(task: Task, tables: Tables, predictions: pa.Table | None = None) -> dict[str, float]:
    """Run the conformance suite; raises :class:`Nonconforming` that tells every promise that is broken.

    ``tables`` are dataset tables of a few events, one row per event: the card's ``truth_sources`` and
    ``inputs``. ``predictions`` must be valid; they are checked beside the task's baselines and its oracle.
    Returns the metrics of ``predictions``, without them those of the first baseline. Raises ValueError
    where a table is missing.
    """
    from collidium.testing.task_suite import CHECKS, Subject, Suite

    subject = Subject(task, tables, predictions)
    broken = [outcome for outcome in Suite(subject, CHECKS) if outcome.state == "broken"]
    if broken:
        told = "\n".join(f"{outcome.check.name}: {outcome.detail}" for outcome in broken)
        raise Nonconforming(told) from broken[0].error
    return subject.score(subject.main)
