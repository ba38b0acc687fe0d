"""What names a job: enough to follow, cancel and collect it from any process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from collidium.contracts.runner import RunnerError, RunnerRefused, RunnerUnavailable
from collidium_runners.pipeline.naming import REQUEST_ID

_HANDLE: Final = re.compile(rf"([1-9]\d{{0,17}})\.([1-9]\d{{0,5}})\.({REQUEST_ID.pattern})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Handle:
    """An array job: its id in the batch system, its parts, and the request that it is for."""

    job_id: int
    parts: int
    request_id: str

    def __str__(self) -> str:
        return f"{self.job_id}.{self.parts}.{self.request_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it again; raises RunnerRefused for what this runner never gave out."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise RunnerRefused(f"there is no job {text[:200]!r}")
        return cls(int(match[1]), int(match[2]), match[3])


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
