"""Settings of the built-in runners; only the one that ``PLATFORM_RUNNER`` chooses heeds its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings


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
