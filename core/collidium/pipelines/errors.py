"""What may go wrong with a simulation on this machine."""

from __future__ import annotations

from collidium.errors import CollidiumError, InvalidInput


class UnknownOrder(InvalidInput):
    """There are no such events to be simulated here; all problems are in ``errors``."""

    exit_code = 2


class CannotSimulate(CollidiumError):
    """The simulation does not begin, or cannot go on: the message says why, and what to do."""

    title = "Cannot simulate"


class StageFailed(CollidiumError):
    """A stage ended before its work was done; ``errors`` has the last lines that it wrote."""

    title = "Stage failed"
