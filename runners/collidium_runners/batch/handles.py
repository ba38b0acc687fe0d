"""The handle of a job: enough to follow, cancel and collect it from any process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from collidium.contracts.runner import RunnerError, RunnerRefused, RunnerUnavailable
from collidium_runners.pipeline.command import REQUEST_ID

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
        """Parse a handle; raises RunnerRefused for any other text."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise RunnerRefused(f"there is no job {text[:200]!r}")
        return cls(int(match[1]), int(match[2]), match[3])


#: Slurm's messages for a job that it will never accept; the last is for a script that is too long.
#: Operators can fix other errors, such as an unknown partition.
_REFUSALS: Final = (
    "Requested time limit is invalid",
    "Invalid job array specification",
    "Pathname of a file",
)


def submission_error(message: str) -> RunnerError:
    """The error for a rejected job; other messages of Slurm are for operators."""
    final = next((words for words in _REFUSALS if words in message), None)
    if final is not None:
        return RunnerRefused(f"the batch system rejected the job: {final}")
    return RunnerUnavailable("the batch system rejected the job; the platform's operators see why")
