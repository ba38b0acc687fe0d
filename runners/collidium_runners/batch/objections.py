"""What a batch system says to a job that it does not take."""

from __future__ import annotations

from typing import Final

from collidium.contracts.runner import RunnerError, RunnerRefused, RunnerUnavailable

#: Slurm's words for a job that it will not take later either; the last are for a script that is too long.
#: Whatever else it objects to, such as a partition that is not there, an operator may mend in time.
_REFUSALS: Final = (
    "Requested time limit is invalid",
    "Invalid job array specification",
    "Pathname of a file",
)


def objection(told: str) -> RunnerError:
    """Slurm's answer to a job that it did not take, as an error; what else it says is for operators."""
    final = next((words for words in _REFUSALS if words in told), None)
    if final is not None:
        return RunnerRefused(f"the batch system did not take the job: {final}")
    return RunnerUnavailable("the batch system did not take the job; the platform's operators see why")
