"""Settings of the built-in runners; only the one that ``PLATFORM_RUNNER`` chooses heeds its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from collidium.settings.values import GIBIBYTE, MEBIBYTE, PLAIN

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class RunnerSettings(BaseSettings):
    """How simulation requests are computed."""

    pipeline_command: str = Field(
        "collidium simulate --pipeline acts --runtime none --flat --channel {channel} --events {events} "
        "--pileup {pileup} --seed {seed} --vary {vary} --first-event {first_event} --output {output}",
        description="Command that simulates one part of a job where the runner computes, written as in a "
        "shell; the words in braces are filled in, each quoted. The channels, pileup and variations of the "
        "pipeline after --pipeline limit what can be ordered.",
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
        4, gt=0, le=1000, description="Maximum run time of a container, as a multiple of its estimate."
    )
    container_extra_seconds: float = Field(900, ge=0, description="Seconds added to that maximum.")
    container_keep_days: float = Field(
        7, ge=1, le=3650, description="How long the output of a container is kept in the data directory."
    )
    local_jobs: int = Field(1, ge=1, le=1000, description="Jobs of the runner local that compute at once.")
    local_niceness: int = Field(10, ge=0, le=19, description="Niceness of jobs of the runner local.")
    local_memory_bytes: int = Field(
        0,
        ge=0,
        description="Memory that each process of a job of the runner local may use; 0: no limit.",
    )
    local_time_factor: float = Field(
        4, gt=0, le=1000, description="Maximum run time of such a job, as a multiple of its estimate."
    )
    local_extra_seconds: float = Field(900, ge=0, description="Seconds added to that maximum.")
    local_keep_days: float = Field(
        7, ge=1, le=3650, description="How long the output of such a job is kept in the data directory."
    )
    sfapi_url: str = Field(
        "https://api.nersc.gov/api/v1.2", description="Address of the Superfacility API (runner sfapi)."
    )
    sfapi_token_url: str = Field(
        "https://oidc.nersc.gov/c2id/token", description="Where access tokens of the API are issued."
    )
    sfapi_client_id: str = Field(
        "", pattern=r"^[!-~]{0,200}$", description="Id of the Superfacility API client that jobs belong to."
    )
    sfapi_key_file: Path | None = Field(
        None, description="File with that client's private key as PEM, readable by its owner alone."
    )
    sfapi_machine: str = Field(
        "perlmutter", pattern=r"^[a-z0-9]{1,32}$", description="Machine of the API that jobs run on."
    )
    sfapi_account: str = Field("", pattern=PLAIN, description="Account that jobs are charged to.")
    sfapi_qos: str = Field("regular", pattern=PLAIN, description="Quality of service that jobs ask for.")
    sfapi_constraint: str = Field("cpu", pattern=PLAIN, description="Kind of nodes that jobs ask for.")
    sfapi_directory: str = Field(
        "", pattern=r"^(/[A-Za-z0-9._@+-]+)*$", description="Directory on the machine that jobs write to."
    )
    sfapi_events_per_part: int = Field(
        1000,
        ge=0,
        le=2**31 - 1,
        description="Maximum number of events of an array task; 0: jobs are never split.",
    )
    sfapi_calls_per_second: float = Field(
        10, gt=0, le=1000, description="Maximum number of calls of the API in a second, of each process."
    )
    sfapi_call_seconds: float = Field(20, gt=0, le=600, description="Maximum time that a call may take.")
    sfapi_submit_seconds: float = Field(
        120, gt=0, le=3600, description="Maximum time that submitting a job through the API may take."
    )
    slurm_url: str = Field(
        "", description="Address of slurmrestd; empty: jobs go through sbatch, squeue, sacct and scancel."
    )
    slurm_api: str = Field(
        "v0.0.38", pattern=r"^v0\.0\.[0-9]{2}$", description="Version of slurmrestd's API to use."
    )
    slurm_token_file: Path | None = Field(
        None, description="File with the JSON web token for slurmrestd; read anew when it changes."
    )
    slurm_user: str = Field(
        "", description="User of the token, whose jobs they are; empty: the server's user."
    )
    slurm_configuration: Path | None = Field(
        None, description="Configuration of Slurm's commands, slurm.conf; empty: where they look for it."
    )
    slurm_directory: Path | None = Field(
        None,
        description="Folder for the output of jobs, the same on server and compute nodes, which must be "
        "there; empty: slurm in the data directory.",
    )
    slurm_partition: str = Field(
        "", pattern=PLAIN, description="Partition of jobs; empty: the cluster's default."
    )
    slurm_account: str = Field(
        "", pattern=PLAIN, description="Account that jobs are charged to; empty: the user's default."
    )
    slurm_qos: str = Field("", pattern=PLAIN, description="Quality of service of jobs; empty: the default.")
    slurm_constraint: str = Field("", pattern=PLAIN, description="Features that the nodes of jobs must have.")
    slurm_events_per_part: int = Field(
        100, ge=0, description="Maximum number of events of an array task; 0: jobs are never split."
    )
    slurm_maximum_parts: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Maximum number of array tasks of a job: below the cluster's MaxArraySize.",
    )
    slurm_cpus_per_part: int = Field(
        0, ge=0, le=4096, description="CPUs of an array task; 0: a whole node of its own."
    )
    slurm_parts_per_node: int = Field(
        1,
        ge=1,
        le=4096,
        description="Array tasks that share a node: each uses that part of its hours and is given as much "
        "more time.",
    )
    slurm_timeout_seconds: float = Field(
        30, gt=0, le=600, description="How long to wait for an answer of Slurm."
    )

    @field_validator("sfapi_url", "sfapi_token_url")
    @classmethod
    def _address(cls, value: str) -> str:
        url = urlsplit(value)
        if (
            url.scheme not in ("http", "https")
            or not url.hostname
            or url.query
            or url.fragment
            or url.username
        ):
            raise ValueError("an address that begins with https://")
        if url.scheme == "http" and url.hostname not in _LOOPBACK:
            raise ValueError("an address with https, which protects the tokens")
        return value

    @field_validator("slurm_url")
    @classmethod
    def _slurm_address(cls, value: str) -> str:
        url = urlsplit(value)
        if value and (url.scheme not in ("http", "https") or not url.hostname or url.username or url.query):
            raise ValueError("an address that begins with http:// or https://")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _slurm_needs_a_token(self) -> Self:
        if self.slurm_url and self.slurm_token_file is None:
            raise ValueError("PLATFORM_SLURM_URL needs PLATFORM_SLURM_TOKEN_FILE, slurmrestd's token")
        return self
