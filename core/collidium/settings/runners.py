"""Settings of the built-in runners; only the one that ``PLATFORM_RUNNER`` chooses heeds its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from collidium.settings.values import GIBIBYTE, MEBIBYTE


class RunnerSettings(BaseSettings):
    """How simulation requests are computed."""

    pipeline_command: str = Field(
        "collidium simulate --channel {channel} --events {events} --pileup {pileup} --seed {seed} "
        "--first-event {first_event} --output {output}",
        description="Command that simulates one part of a job where the runner computes, written as in a "
        "shell; the words in braces are filled in, each quoted.",
    )
    mock_seconds: float = Field(2, ge=0, description="How long a job of the mock runner takes.")
    mock_outcome: Literal["completed", "failed", "cancelled", "stalled"] = Field(
        "completed", description="How jobs of the mock runner end; stalled ones never do."
    )
    container_runtime: Literal["auto", "docker", "podman"] = Field(
        "auto",
        description="Engine of the container runner; auto: the first of docker and podman that answers.",
    )
    container_image: str = Field(
        "", description="Image of the pipeline; the container runner does not fetch it, the operator does."
    )
    container_jobs: int = Field(1, ge=1, le=1000, description="Containers that compute at once.")
    container_memory_bytes: int = Field(
        8 * GIBIBYTE, ge=16 * MEBIBYTE, description="Memory that one container may use."
    )
    container_cpus: float = Field(
        0, ge=0, le=4096, description="CPUs that one container may use; 0: all of the machine's."
    )
    container_time_factor: float = Field(
        4, gt=0, le=1000, description="How much longer a container may run than one node is expected to."
    )
    container_extra_seconds: float = Field(
        900, ge=0, description="Time that every container may run on top of that."
    )
    container_keep_days: float = Field(
        7, ge=1, le=3650, description="How long the output of a container is kept in the data directory."
    )
