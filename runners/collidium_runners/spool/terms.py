"""On what terms jobs run."""

from __future__ import annotations

from dataclasses import dataclass

from collidium.contracts.runner import Job


@dataclass(frozen=True, slots=True)
class Terms:
    """What the settings say of jobs on this machine."""

    #: How many run at once.
    jobs: int
    #: What one may use; 0: no limit.
    memory_bytes: int
    time_factor: float
    extra_seconds: float
    keep_seconds: float

    def seconds(self, job: Job) -> float:
        """The time limit of a job."""
        return job.node_seconds * self.time_factor + self.extra_seconds
