"""Settings of benchmarks: what submissions may be, cost and earn."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from collidium.contracts.executor import Limits
from collidium.settings.values import GIBIBYTE, MEBIBYTE


class ScoringSettings(BaseSettings):
    """How submissions are taken and scored."""

    benchmark_reward: Decimal = Field(
        Decimal(50),
        ge=0,
        decimal_places=3,
        description="Credits for a new best, unless the task sets its own.",
    )
    submissions_per_day: int = Field(
        10,
        ge=1,
        le=10_000,
        description=(
            "Stored submissions of a participant in a UTC day, unless a challenge sets its own number."
        ),
    )
    deadline_grace_seconds: float = Field(
        600,
        ge=0,
        le=86400,
        description=(
            "How long after a challenge closes an upload that began before may complete and still count."
        ),
    )
    rewards_per_day: int = Field(
        3, ge=0, le=10_000, description="Rewards of one account for one metric of a task in a UTC day."
    )
    reward_significance: float = Field(
        0,
        ge=0,
        le=100,
        description="Rewards are paid for gains above this number of standard errors; 0: for every gain.",
    )
    evaluations_in_flight: int = Field(
        4, ge=1, le=1000, description="Files of one account that a server process accepts at once."
    )
    max_submission_bytes: int = Field(8 * GIBIBYTE, gt=0, description="Largest accepted file of predictions.")
    truth_cache_bytes: int = Field(
        100 * GIBIBYTE,
        ge=0,
        description="Truth from the storage that this machine caches, not counting truth in use.",
    )
    scoring_workers: int = Field(
        0, ge=0, le=256, description="Scoring processes; 0: one for each core of the machine."
    )
    dask_scheduler: str = Field(
        "",
        pattern=r"^((tls|tcp)://[A-Za-z0-9.\[\]:-]+:[0-9]+)?$",
        description="Scheduler that executor dask uses: tls://host:8786; tcp:// encrypts nothing.",
    )
    dask_ca: Path | None = Field(
        None, description="Certificate of the authority that signs those of scheduler, servers and workers."
    )
    dask_certificate: Path | None = Field(None, description="Certificate of this machine for Dask.")
    dask_key: Path | None = Field(None, description="Key of that certificate.")
    dask_worker_name: str = Field(
        "",
        max_length=200,
        description="Name of a worker in its cluster, by which dask-jobqueue recognises its jobs.",
    )
    dask_wait_seconds: float = Field(
        60,
        gt=0,
        le=86400,
        description="How long a call waits for a scheduler and a worker before it returns 503.",
    )
    scoring_memory_bytes: int = Field(
        2 * GIBIBYTE,
        ge=256 * MEBIBYTE,
        description="Memory that one scoring call and its child processes may use.",
    )
    scoring_seconds: float = Field(300, gt=0, description="Time that scoring one block of events may take.")
    evaluation_seconds: float = Field(
        1800, gt=0, description="Time that scoring a whole file may take, including the wait for its turn."
    )
    model_memory_bytes: int = Field(
        4 * GIBIBYTE,
        ge=512 * MEBIBYTE,
        description="Memory that a submitted model may use while the platform runs it.",
    )
    model_seconds: float = Field(
        3600, gt=0, description="Time that a submitted model may take for all events of a challenge."
    )
    model_price: Decimal = Field(
        Decimal(0),
        ge=0,
        le=10**6,
        decimal_places=3,
        description=(
            "Credits for running a submitted model; refunded if the platform fails, or if it is "
            "cancelled before it runs."
        ),
    )
    model_unconfined: bool = Field(
        False,
        description=(
            "Whether submitted models run where the system cannot isolate them from network, files and "
            "system calls: only for public events."
        ),
    )

    @property
    def scoring_limits(self) -> Limits:
        """What one call of a scoring process may use."""
        return Limits(self.scoring_memory_bytes, self.scoring_seconds)
