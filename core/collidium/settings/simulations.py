"""Settings of simulation requests: limits, costs, deadlines and webhooks."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from collidium.settings.values import MEBIBYTE, NumberByName

#: Channels are parts of paths and repository names.
_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,63}")

_HOUR = 3600
_DAY = 24 * _HOUR
_YEAR = 366 * _DAY

_CHANNELS = {
    "ttbar": 90.0,
    "ggf": 60.0,
    "dihiggs": 60.0,
    "diphoton": 30.0,
    "jets": 45.0,
    "zmumu": 30.0,
    "zee": 30.0,
    "higgs_portal": 60.0,
    "susy_gmsb": 60.0,
    "hidden_valley": 60.0,
    "zprime": 60.0,
    "single_muon": 5.0,
}
_OVERHEADS = {"ttbar": 300.0, "susy_gmsb": 300.0, "zprime": 300.0, "hidden_valley": 300.0}


class SimulationSettings(BaseSettings):
    """Settings of simulation requests."""

    run_mode: Literal["mock", "real"] = Field(
        "mock",
        description="mock: requests only pass through their states; real: PLATFORM_RUNNER computes them.",
    )
    runner: str = Field("", description="Runner of real mode.")
    channels: NumberByName = Field(
        _CHANNELS, description="Available channels, each with its node-seconds per event."
    )
    channel_overheads: NumberByName = Field(
        _OVERHEADS, description="Additional node-seconds per request of a channel; others have none."
    )
    max_events: int = Field(100_000, ge=1, le=2**31 - 1, description="Maximum events of a request.")
    max_pileup: int = Field(200, ge=0, le=10_000, description="Maximum pileup of a request.")
    dedup_days: float = Field(
        7,
        ge=0,
        le=3650,
        description="How long a completed request is reused for requests with the same config.",
    )
    burst_requests: int = Field(
        10,
        ge=1,
        le=100_000,
        description="Maximum simulation requests of an account in PLATFORM_BURST_SECONDS.",
    )
    burst_seconds: float = Field(300, gt=0, le=_DAY, description="Time window of PLATFORM_BURST_REQUESTS.")
    unfinished_requests: int = Field(
        20, ge=1, le=100_000, description="Maximum unfinished simulation requests of an account."
    )
    monthly_node_hours: Decimal = Field(
        Decimal(10_000), gt=0, description="Maximum node-hours of all requests of a calendar month."
    )
    secret_key: SecretStr | None = Field(
        None,
        description="Keys that encrypt stored secrets of users, separated by commas: the first encrypts, all "
        "decrypt; not set: a key is created in the data directory.",
    )
    pipeline_version: str = Field(
        "",
        max_length=64,
        description="Version of the events, to be changed with the command; empty: that of the pipeline "
        "after --pipeline.",
    )
    tag: str = Field(
        "collidium", pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Tag of repositories on the hub."
    )
    follow_requests: bool = Field(
        True,
        description="Whether servers follow requests and deliver webhooks, or only `collidium worker`.",
    )
    poll_seconds: float = Field(60, gt=0, le=_HOUR, description="Time between two polls of a job.")
    lease_seconds: float = Field(
        60, ge=1, le=_HOUR, description="Duration of a process's lease on a request that it follows."
    )
    submit_deadline_seconds: float = Field(_HOUR, gt=0, le=_YEAR, description="Maximum time to submit a job.")
    queued_deadline_seconds: float = Field(
        7 * _DAY, gt=0, le=_YEAR, description="Maximum time of a job in the queue."
    )
    running_deadline_seconds: float = Field(
        2 * _DAY, gt=0, le=_YEAR, description="Maximum time of a running job."
    )
    publish_deadline_seconds: float = Field(
        _DAY, gt=0, le=_YEAR, description="Maximum time to collect a job's output, and to publish it."
    )
    output_event_bytes: int = Field(
        16 * MEBIBYTE,
        ge=MEBIBYTE,
        description="Maximum output of a job per event without pileup; pileup 50 doubles it.",
    )
    cancel_deadline_seconds: float = Field(
        600, gt=0, le=_YEAR, description="Maximum time to wait for a cancelled job to stop."
    )
    webhook_private_addresses: bool = Field(False, description="Whether webhooks may have private addresses.")
    webhook_timeout_seconds: float = Field(
        10, gt=0, le=120, description="Maximum time of a webhook's response."
    )
    webhook_give_up_seconds: float = Field(
        _DAY, gt=0, le=_YEAR, description="How long a failing webhook is retried."
    )

    @field_validator("channels", "channel_overheads")
    @classmethod
    def _times(cls, value: dict[str, float]) -> dict[str, float]:
        for name, seconds in value.items():
            if not _CHANNEL.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a channel: use small letters, digits and _")
            if not 0 <= seconds <= _DAY:
                raise ValueError(f"{name}: must be from 0 to {_DAY} seconds")
        return value

    @model_validator(mode="after")
    def _mode_and_runner_agree(self) -> Self:
        if self.run_mode == "real" and self.runner in ("", "mock"):
            raise ValueError("PLATFORM_RUN_MODE=real needs PLATFORM_RUNNER")
        if self.run_mode == "mock" and self.runner not in ("", "mock"):
            raise ValueError(f"PLATFORM_RUNNER={self.runner} needs PLATFORM_RUN_MODE=real")
        return self

    @property
    def runner_name(self) -> str:
        """The runner of new requests."""
        return "mock" if self.run_mode == "mock" else self.runner
