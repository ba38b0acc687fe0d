"""Runs the checks on a subject and stores the outcome of each."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from collidium.errors import ConfigurationError
from collidium.testing.conformance.promise import Nonconforming
from collidium.testing.task_suite.subject import Subject

State = Literal["kept", "broken", "not checked"]

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Check:
    """A named promise; ``run`` raises if it is broken."""

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
class Outcome:
    """The outcome of one check: ``kept``, ``broken`` or ``not checked``."""

    check: Check
    state: State
    #: How the promise is broken, or why it was not checked.
    detail: str | None = None
    error: Exception | None = None

    @property
    def raised(self) -> BaseException | None:
        """The exception of the task itself, if that breaks the promise."""
        return self.error.__cause__ if isinstance(self.error, Nonconforming) else self.error


class Suite:
    """The checks of one subject; iterating runs them and gives their outcomes.

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
        self._outcomes: dict[str, Outcome] = {}

    def __iter__(self) -> Iterator[Outcome]:
        return (self.outcome(check) for check in self.checks)

    def outcome(self, check: Check) -> Outcome:
        """Run a check once, after those that it depends on.

        Parameters
        ----------
        check : Check

        Returns
        -------
        Outcome
        """
        if check.name not in self._outcomes:
            self._outcomes[check.name] = self._after_foundations(check)
        return self._outcomes[check.name]

    def _after_foundations(self, check: Check) -> Outcome:
        for other in self.checks[: self.checks.index(check)]:
            if other.foundation and self.outcome(other).state != "kept":
                return Outcome(check, "not checked", f"{other.name} comes first")
        return _outcome(check, self.subject)


def _outcome(check: Check, subject: Subject) -> Outcome:
    try:
        check.run(subject)
    except Nonconforming as error:
        return Outcome(check, "broken", str(error), error)
    except Exception as error:
        return Outcome(check, "broken", f"it raises {described(error)}", error)
    return Outcome(check, "kept")


def described(error: BaseException) -> str:
    """The error and the last frame outside of the suite that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not Path(frame.filename).is_relative_to(_HERE)]
    text = f"{type(error).__name__}: {error}"
    if not outside:
        return text
    return f"{text} ({Path(outside[-1].filename).name}:{outside[-1].lineno} in {outside[-1].name})"
