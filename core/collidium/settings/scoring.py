"""Settings of benchmarks: limits, rewards and prices of submissions, and their scoring."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from collidium.contracts.executor import Limits
from collidium.settings.values import GIBIBYTE, MEBIBYTE


class ScoringSettings(BaseSettings):
    """Settings of submissions and scoring."""

    benchmark_reward: Decimal = Field(
        Decimal(50),
        ge=0,
        decimal_places=3,
        description="Credits for a new best score, unless the task defines its own.",
    )
    submissions_per_day: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Submissions of a participant per UTC day, unless a challenge defines its own number.",
    )
    deadline_grace_seconds: float = Field(
        600,
        ge=0,
        le=86400,
        description="Maximum time after the end of a challenge to complete an upload that began before it.",
    )
    rewards_per_day: int = Field(
        3, ge=0, le=10_000, description="Rewards of an account for a metric of a task per UTC day."
    )
    rewards_on_public_truth: bool | None = Field(
        None,
        description="Whether new bests are paid where everybody can read the truth, such as that of packaged "
        "events; not set: in mock mode only.",
    )
    reward_significance: float = Field(
        0,
        ge=0,
        le=100,
        description="Rewards are paid for gains above this number of standard errors; 0: for all gains.",
    )
    evaluations_in_flight: int = Field(
        4, ge=1, le=1000, description="Files of an account that a server process receives at once."
    )
    max_submission_bytes: int = Field(
        8 * GIBIBYTE, gt=0, description="Maximum size of a file of predictions."
    )
    truth_cache_bytes: int = Field(
        100 * GIBIBYTE,
        ge=0,
        description="Size of this machine's cache of truth from the storage, without truth in use.",
    )
    scoring_workers: int = Field(
        0, ge=0, le=256, description="Number of scoring processes; 0: one per core of the machine."
    )
    dask_scheduler: str = Field(
        "",
        pattern=r"^((tls|tcp)://[A-Za-z0-9.\[\]:-]+:[0-9]+)?$",
        description="Scheduler of the executor dask: tls://host:8786, or tcp:// without encryption.",
    )
    dask_ca: Path | None = Field(
        None, description="Certificate of the authority that signs scheduler, servers and workers."
    )
    dask_certificate: Path | None = Field(None, description="Certificate of this machine for Dask.")
    dask_key: Path | None = Field(None, description="Key of that certificate.")
    dask_worker_name: str = Field(
        "",
        max_length=200,
        description="Name of a worker in its cluster, for dask-jobqueue.",
    )
    dask_wait_seconds: float = Field(
        60,
        gt=0,
        le=86400,
        description="How long a call waits for a scheduler and a worker before it fails with 503.",
    )
    scoring_memory_bytes: int = Field(
        2 * GIBIBYTE,
        ge=256 * MEBIBYTE,
        description="Maximum memory of a scoring call and its child processes.",
    )
    scoring_seconds: float = Field(300, gt=0, description="Maximum time to score a block of events.")
    evaluation_seconds: float = Field(
        1800, gt=0, description="Maximum time to score a file, including waiting."
    )
    model_memory_bytes: int = Field(
        4 * GIBIBYTE,
        ge=512 * MEBIBYTE,
        description="Maximum memory of a submitted model while it runs.",
    )
    model_seconds: float = Field(
        3600, gt=0, description="Maximum time of a submitted model for all events of a challenge."
    )
    model_price: Decimal = Field(
        Decimal(0),
        ge=0,
        le=10**6,
        decimal_places=3,
        description="Credits for running a submitted model; refunded if the platform fails, or if the model "
        "is cancelled before it runs.",
    )
    model_unconfined: bool = Field(
        False,
        description="Whether submitted models run without confinement from network, files and system calls, "
        "if the system lacks it: only for public events.",
    )

    @property
    def scoring_limits(self) -> Limits:
        """The limits of a call of a scoring process."""
        return Limits(self.scoring_memory_bytes, self.scoring_seconds)
