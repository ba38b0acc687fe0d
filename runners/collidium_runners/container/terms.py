"""On what terms containers run."""

from __future__ import annotations

from dataclasses import dataclass

from collidium.contracts.runner import Job
from collidium_runners.container.containers import Allowance
from collidium_runners.pipeline.command import PipelineCommand


@dataclass(frozen=True, slots=True)
class Terms:
    """What the settings say of containers."""

    image: str
    command: PipelineCommand
    allowance: Allowance
    #: How many run at once.
    jobs: int
    time_factor: float
    extra_seconds: float
    keep_seconds: float

    def seconds(self, job: Job) -> float:
        """The time limit of a job."""
        return job.node_seconds * self.time_factor + self.extra_seconds
