"""The subject of all checks: the task, a few events, and predictions for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables, Task
from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite import scoring

GIVEN = "the predictions given"
ORACLE = "the oracle"


def baseline(name: str) -> str:
    """The label of a baseline's predictions."""
    return f"baseline {name}"


class Subject:
    """A task and a few events to check it on.

    Parameters
    ----------
    task : Task
        The task.
    tables : mapping of str to pyarrow.Table
        The card's ``truth_sources`` and ``inputs``, one row per event.
    predictions : pyarrow.Table, optional
        Valid predictions, for a task without baseline.

    Raises
    ------
    ValueError
        If a table is missing.
    """

    def __init__(self, task: Task, tables: Tables, predictions: pa.Table | None = None) -> None:
        for part in ("truth_sources", "inputs"):
            missing = sorted(set(getattr(task.card, part)) - set(tables))
            if missing:
                raise ValueError(f"tables lack the card's {part} {', '.join(missing)}")
        self.task = task
        self.tables = {name: table.sort_by("event_id") for name, table in tables.items()}
        self._given = predictions

    @property
    def sources(self) -> dict[str, pa.Table]:
        """The argument of :meth:`Task.prepare`, a new dictionary."""
        return {name: self.tables[name] for name in self.task.card.truth_sources}

    @property
    def inputs(self) -> dict[str, pa.Table]:
        """The argument of a baseline, a new dictionary."""
        return {name: self.tables[name] for name in self.task.card.inputs}

    @cached_property
    def events(self) -> list[int]:
        """Every event of the tables, in order."""
        ids = [np.asarray(table.column("event_id"), dtype=np.int64) for table in self.sources.values()]
        return [int(event) for event in np.unique(np.concatenate(ids))]

    @cached_property
    def truth(self) -> dict[str, pa.Table]:
        return self.task.prepare(self.sources)

    @cached_property
    def answers(self) -> Mapping[str, pa.Table]:
        """Valid predictions by label: those given, of the baselines, of the oracle.

        Only the first baseline, the floor, gets all events: better ones are slower.
        """
        answers = {} if self._given is None else {GIVEN: self._given}
        for number, (name, reconstruct) in enumerate(self.task.baselines().items()):
            inputs = scoring.only(self.inputs, self.events[:1]) if number else self.inputs
            answers[baseline(name)] = reconstruct(inputs)
        oracle = self.task.oracle(self.truth)
        if oracle is not None:
            answers[ORACLE] = oracle
        promise(bool(answers), "the task has neither baselines nor an oracle: give predictions to score")
        return {label: self._as_submitted(label, table) for label, table in answers.items()}

    @cached_property
    def main(self) -> pa.Table:
        """The predictions given, else those of the first baseline, else the oracle's."""
        return next(iter(self.answers.values()))

    @cached_property
    def compared(self) -> Mapping[str, pa.Table]:
        """The main predictions and the oracle's, on which ways of scoring are compared."""
        first = next(iter(self.answers))
        return {what: table for what, table in self.answers.items() if what in (first, ORACLE)}

    def score(self, predictions: pa.Table, cut: scoring.Cut | None = None) -> dict[str, float]:
        """Score valid predictions.

        Parameters
        ----------
        predictions : pyarrow.Table
        cut : sequence of sequences of int, optional
            The event ids of each block; by default all in one block.

        Returns
        -------
        dict of str to float
            The metrics.
        """
        return scoring.score(self.task, self.truth, predictions, cut or [self.events])

    def _as_submitted(self, what: str, table: pa.Table) -> pa.Table:
        columns = self.task.card.column_names
        missing = sorted(set(columns) - set(table.column_names))
        promise(not missing, f"{what} must have the card's columns; it lacks {', '.join(missing)}")
        return table.select(columns).sort_by("event_id")
