"""The subject of all checks (a task with a few events and predictions), and the suite that runs them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables, Task
from collidium.datasets.publishing.blinding import PUBLIC, in_public_order, without_truth
from collidium.errors import ConfigurationError, UnusableDataset
from collidium.testing.conformance.promise import Nonconforming, promise
from collidium.testing.task_suite import scoring

GIVEN = "the predictions given"
ORACLE = "the oracle"
State = Literal["kept", "broken", "not checked"]

_HERE: Final = Path(__file__).parent


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
        self.tables = _in_public_order({name: table.sort_by("event_id") for name, table in tables.items()})
        self._given = predictions

    @property
    def sources(self) -> dict[str, pa.Table]:
        """The argument of :meth:`Task.prepare`, a new dictionary."""
        return {name: self.tables[name] for name in self.task.card.truth_sources}

    @property
    def inputs(self) -> dict[str, pa.Table]:
        """The argument of a baseline, a new dictionary: what is published of events that are scored.

        Truth is withheld as ``collidium datasets publish --withhold-truth`` does. A table of no known kind is
        given whole, unless truth is prepared from it.
        """
        card = self.task.card
        return {
            name: without_truth(name, self.tables[name])
            if name in PUBLIC or name in card.truth_sources
            else self.tables[name]
            for name in card.inputs
        }

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
        """Valid predictions by label: given ones, those of baselines, and those of the oracle.

        Only the first baseline gets all events, because others may be slow.
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
        """The given predictions, or those of the first baseline, or of the oracle."""
        return next(iter(self.answers.values()))

    @cached_property
    def compared(self) -> Mapping[str, pa.Table]:
        """The main predictions and those of the oracle, for checks that compare scores."""
        first = next(iter(self.answers))
        return {what: table for what, table in self.answers.items() if what in (first, ORACLE)}

    def score(self, predictions: pa.Table, cut: scoring.Cut | None = None) -> dict[str, float]:
        """Score valid predictions.

        Parameters
        ----------
        predictions : pyarrow.Table
        cut : sequence of sequences of int, optional
            The event ids of each block; default: a single block.

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


def _in_public_order(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables as they are published, if they are a dataset's: the order of simulation reveals truth."""
    ids = [table.column("event_id").to_pylist() for table in tables.values()]
    try:
        return in_public_order(tables) if all(each == ids[0] for each in ids) else tables
    except UnusableDataset:
        return tables


@dataclass(frozen=True, slots=True)
class Check:
    """A named check of a promise; ``run`` raises if the promise is broken."""

    run: Callable[[Subject], None]
    #: Whether all later checks need it to pass.
    foundation: bool = False

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def promise(self) -> str:
        """The first line of the check's docstring."""
        return (self.run.__doc__ or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The outcome of one check: ``kept``, ``broken`` or ``not checked``."""

    check: Check
    state: State
    #: The broken promise, or the reason why it was not checked.
    detail: str | None = None
    error: Exception | None = None

    @property
    def raised(self) -> BaseException | None:
        """The exception of the task, if it raised one."""
        return self.error.__cause__ if isinstance(self.error, Nonconforming) else self.error

    @property
    def cause(self) -> str | None:
        """What the task raised and where, or the broken promise."""
        return described(self.raised) if self.raised is not None else self.detail


class Suite:
    """The checks of a subject. Iteration runs them and yields their outcomes.

    Parameters
    ----------
    subject : Subject
        The task and its events.
    checks : sequence of Check
        Usually :data:`~collidium.testing.task_suite.CHECKS`.

    Raises
    ------
    ConfigurationError
        If hypothesis is not installed.

    Examples
    --------
    ::

        for outcome in Suite(Subject(task, tables), CHECKS):
            print(outcome.state, outcome.check.promise)
    """

    def __init__(self, subject: Subject, checks: Sequence[Check]) -> None:
        if find_spec("hypothesis") is None:
            raise ConfigurationError("checking a task needs hypothesis: pip install 'collidium[test]'")
        self.subject = subject
        self.checks = tuple(checks)
        self._outcomes: dict[str, CheckOutcome] = {}

    def __iter__(self) -> Iterator[CheckOutcome]:
        return (self.outcome(check) for check in self.checks)

    def outcome(self, check: Check) -> CheckOutcome:
        """Run a check once, after the foundations that it needs.

        Parameters
        ----------
        check : Check

        Returns
        -------
        Outcome
        """
        if check.name not in self._outcomes:
            found = self._after_foundations(check)
            self._outcomes[check.name] = self._with_its_cause(found)
        return self._outcomes[check.name]

    def _with_its_cause(self, found: CheckOutcome) -> CheckOutcome:
        """A broken promise, or a reference to an earlier one that has the same cause."""
        for other in self._outcomes.values():
            if found.state == other.state == "broken" and found.cause == other.cause:
                return CheckOutcome(found.check, "not checked", f"{other.check.name} has the same cause")
        return found

    def _after_foundations(self, check: Check) -> CheckOutcome:
        for other in self.checks[: self.checks.index(check)]:
            if other.foundation and self.outcome(other).state != "kept":
                return CheckOutcome(check, "not checked", f"{other.name} comes first")
        return _outcome(check, self.subject)


def _outcome(check: Check, subject: Subject) -> CheckOutcome:
    try:
        check.run(subject)
    except Nonconforming as error:
        return CheckOutcome(check, "broken", str(error), error)
    except Exception as error:  # third-party code may raise anything
        return CheckOutcome(check, "broken", f"it raises {described(error)}", error)
    return CheckOutcome(check, "kept")


def described(error: BaseException) -> str:
    """Describe an error with the last frame outside of the suite."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not Path(frame.filename).is_relative_to(_HERE)]
    text = f"{type(error).__name__}: {error}"
    if not outside:
        return text
    return f"{text} ({Path(outside[-1].filename).name}:{outside[-1].lineno} in {outside[-1].name})"
