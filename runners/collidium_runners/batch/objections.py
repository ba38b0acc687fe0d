"""What a batch system says to a job that it does not take."""

from __future__ import annotations

from typing import Final

from collidium.contracts.runner import RunnerError, RunnerRefused, RunnerUnavailable
from collidium_runners.pipeline.sayings import last_line

#: Slurm's words for a job that it will not take later either; the last are for a script that is too long.
#: Whatever else it objects to, such as a partition that is not there, an operator may mend in time.
_REFUSALS: Final = (
    "Requested time limit is invalid",
    "Invalid job array specification",
    "Pathname of a file",
)


def objection(told: str) -> RunnerError:
    """Slurm's answer to a job that it did not take, as an error."""
    kind = RunnerRefused if any(words in told for words in _REFUSALS) else RunnerUnavailable
    return kind(f"the batch system did not take the job: {last_line(told)}")
