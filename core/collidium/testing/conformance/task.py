"""The contract of a benchmark task."""

from __future__ import annotations

import pyarrow as pa

from collidium.contracts.task import Tables, Task
from collidium.testing.conformance.promise import Nonconforming


def check_task(task: Task, tables: Tables, predictions: pa.Table | None = None) -> dict[str, float]:
    """Run the conformance suite of a task.

    Parameters
    ----------
    task : Task
        The task.
    tables : mapping of str to pyarrow.Table
        The card's ``truth_sources`` and ``inputs``: dataset tables of a few events, one row per event.
    predictions : pyarrow.Table, optional
        Valid predictions to check in addition to those of the task's baselines and oracle.

    Returns
    -------
    dict of str to float
        The metrics of ``predictions``, or of the first baseline.

    Raises
    ------
    Nonconforming
        With every broken promise.
    ValueError
        If a table is missing.

    Examples
    --------
    >>> from collidium.testing.conformance import check_task
    >>> from collidium.testing.task_suite import sample_tables
    >>> from collidium_tasks.tracking import TrackingTask
    >>> task = TrackingTask()
    >>> sorted(check_task(task, sample_tables(task)))  # doctest: +SKIP
    ['duplicate_rate', 'fake_rate', 'physics_eff_pt1', 'trackml_weighted_efficiency']
    """
    from collidium.testing.task_suite import CHECKS, Subject, Suite

    subject = Subject(task, tables, predictions)
    broken = [outcome for outcome in Suite(subject, CHECKS) if outcome.state == "broken"]
    if broken:
        message = "\n".join(f"{outcome.check.name}: {outcome.detail}" for outcome in broken)
        raise Nonconforming(message) from broken[0].error
    return subject.score(subject.main)
