"""Records of array tasks: ``status/<job id>_<index>``, written by ``part.sh`` when a task ends.

The batch system forgets jobs that have ended; their own records stay with the output.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

from collidium.contracts.runner import JobState
from collidium_runners.batch.states import TaskStatus

#: Exit code of a shell that SIGTERM ended.
_TERMINATED = 143


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """How a task ended; times in seconds since 1970, by the clock of its node."""

    exit_code: int
    began: float
    ended: float

    @classmethod
    def parse(cls, text: str | bytes) -> Self | None:
        """Read a record; None for what is none, such as a file that was cut short."""
        try:
            data = json.loads(text)
            return cls(int(data["exit_code"]), float(data["began"]), float(data["ended"]))
        except (ValueError, TypeError, KeyError, OverflowError):
            return None

    def status(self, index: int, parts_per_node: int = 1, *, cancelled: bool = False) -> TaskStatus:
        """The status of the task; a node shared by parts counts in fractions.

        ``cancelled``: the job was to be stopped. Then a task that SIGTERM ended was cancelled; otherwise it
        reached its time limit, or an operator ended it.
        """
        seconds = max(self.ended - self.began, 0.0) / parts_per_node
        if self.exit_code == 0:
            return TaskStatus(index, JobState.COMPLETED, seconds)
        if self.exit_code == _TERMINATED and cancelled:
            return TaskStatus(index, JobState.CANCELLED, seconds, "cancelled")
        reason = "terminated" if self.exit_code == _TERMINATED else f"exit code {self.exit_code}"
        return TaskStatus(index, JobState.FAILED, seconds, reason)
