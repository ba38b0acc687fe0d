"""Settings of the built-in runners. Only the runner of ``PLATFORM_RUNNER`` reads its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from collidium.settings.values import GIBIBYTE, MEBIBYTE, PLAIN

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class RunnerSettings(BaseSettings):
    """Settings of runners."""

    pipeline_command: str = Field(
        "collidium simulate --pipeline acts --runtime none --flat --channel {channel} --events {events} "
        "--pileup {pileup} --seed {seed} --vary {vary} --first-event {first_event} --output {output}",
        description="Shell command that simulates one part of a job; the words in braces are replaced by "
        "quoted values. The channels, pileup and variations of the pipeline after --pipeline limit what can "
        "be ordered.",
    )
    mock_seconds: float = Field(2, ge=0, description="How long a job of the mock runner takes.")
    mock_outcome: Literal["completed", "failed", "cancelled", "stalled"] = Field(
        "completed", description="How jobs of the mock runner end; stalled jobs never end."
    )
    container_runtime: Literal["auto", "docker", "podman"] = Field(
        "auto",
        description="Engine of the container runner; auto: docker if it responds, else podman.",
    )
    container_image: str = Field("", description="Image of the pipeline, which the operator has to pull.")
    container_jobs: int = Field(1, ge=1, le=1000, description="Maximum number of containers at once.")
    container_memory_bytes: int = Field(
        8 * GIBIBYTE, ge=16 * MEBIBYTE, description="Maximum memory of a container."
    )
    container_cpus: float = Field(
        0, ge=0, le=4096, description="Maximum CPUs of a container; 0: all of the machine."
    )
    container_time_factor: float = Field(
        4,
        gt=0,
        le=1000,
        description="Maximum time of a container, relative to the expected time on one node.",
    )
    container_extra_seconds: float = Field(
        900, ge=0, description="Additional maximum time of every container."
    )
    container_keep_days: float = Field(
        7, ge=1, le=3650, description="How long the output of a container is kept in the data directory."
    )
    local_jobs: int = Field(
        1, ge=1, le=1000, description="Maximum number of jobs of the runner local at once."
    )
    local_niceness: int = Field(10, ge=0, le=19, description="Niceness of jobs of the runner local.")
    local_memory_bytes: int = Field(
        0,
        ge=0,
        description="Maximum memory of each process of a job of the runner local; 0: no limit.",
    )
    local_time_factor: float = Field(
        4, gt=0, le=1000, description="Maximum time of such a job, relative to the expected time on one node."
    )
    local_extra_seconds: float = Field(900, ge=0, description="Additional maximum time of every such job.")
    local_keep_days: float = Field(
        7, ge=1, le=3650, description="How long the output of such a job is kept in the data directory."
    )
    sfapi_url: str = Field(
        "https://api.nersc.gov/api/v1.2", description="Address of the Superfacility API (runner sfapi)."
    )
    sfapi_token_url: str = Field(
        "https://oidc.nersc.gov/c2id/token", description="Address that issues access tokens of the API."
    )
    sfapi_client_id: str = Field(
        "", pattern=r"^[!-~]{0,200}$", description="Client id of the Superfacility API."
    )
    sfapi_key_file: Path | None = Field(
        None, description="PEM file of that client's private key, readable only by its owner."
    )
    sfapi_machine: str = Field(
        "perlmutter", pattern=r"^[a-z0-9]{1,32}$", description="Machine that jobs run on."
    )
    sfapi_account: str = Field("", pattern=PLAIN, description="Account that jobs are charged to.")
    sfapi_qos: str = Field("regular", pattern=PLAIN, description="Quality of service of jobs.")
    sfapi_constraint: str = Field("cpu", pattern=PLAIN, description="Kind of nodes of jobs.")
    sfapi_directory: str = Field(
        "", pattern=r"^(/[A-Za-z0-9._@+-]+)*$", description="Directory on the machine that jobs write to."
    )
    sfapi_events_per_part: int = Field(
        1000,
        ge=0,
        le=2**31 - 1,
        description="Maximum number of events of an array task; 0: jobs are not split.",
    )
    sfapi_calls_per_second: float = Field(
        10, gt=0, le=1000, description="Maximum number of calls of the API per second and process."
    )
    sfapi_call_seconds: float = Field(20, gt=0, le=600, description="Maximum time of a call.")
    sfapi_submit_seconds: float = Field(
        120, gt=0, le=3600, description="Maximum time of the API to submit a job."
    )
    slurm_url: str = Field(
        "", description="Address of slurmrestd; empty: jobs go through sbatch, squeue, sacct and scancel."
    )
    slurm_api: str = Field(
        "v0.0.38", pattern=r"^v0\.0\.[0-9]{2}$", description="Version of slurmrestd's API to use."
    )
    slurm_token_file: Path | None = Field(
        None, description="File with the JSON web token for slurmrestd; read again when it changes."
    )
    slurm_user: str = Field(
        "", description="User of the token and owner of the jobs; empty: the server's user."
    )
    slurm_configuration: Path | None = Field(
        None, description="Path of slurm.conf for Slurm's commands; empty: their default."
    )
    slurm_directory: Path | None = Field(
        None,
        description="Existing directory for the output of jobs, with the same path on server and compute "
        "nodes; empty: slurm in the data directory.",
    )
    slurm_partition: str = Field(
        "", pattern=PLAIN, description="Partition of jobs; empty: the cluster's default."
    )
    slurm_account: str = Field(
        "", pattern=PLAIN, description="Account that jobs are charged to; empty: the user's default."
    )
    slurm_qos: str = Field("", pattern=PLAIN, description="Quality of service of jobs; empty: the default.")
    slurm_constraint: str = Field("", pattern=PLAIN, description="Required features of the nodes.")
    slurm_events_per_part: int = Field(
        100, ge=0, description="Maximum number of events of an array task; 0: jobs are not split."
    )
    slurm_maximum_parts: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Maximum number of array tasks of a job; must be below the cluster's MaxArraySize.",
    )
    slurm_cpus_per_part: int = Field(0, ge=0, le=4096, description="CPUs of an array task; 0: a whole node.")
    slurm_parts_per_node: int = Field(
        1,
        ge=1,
        le=4096,
        description="Number of array tasks that share a node; each counts as that fraction of a node, and "
        "its time limit is multiplied by the number.",
    )
    slurm_timeout_seconds: float = Field(30, gt=0, le=600, description="Maximum time of a response of Slurm.")

    @field_validator("sfapi_url", "sfapi_token_url")
    @classmethod
    def _address(cls, value: str) -> str:
        url = urlsplit(value)
        is_plain = not (url.query or url.fragment or url.username)
        if url.scheme not in ("http", "https") or not url.hostname or not is_plain:
            raise ValueError("must be an address that begins with https://")
        if url.scheme == "http" and url.hostname not in _LOOPBACK:
            raise ValueError("must be an address with https, which protects the tokens")
        return value

    @field_validator("slurm_url")
    @classmethod
    def _slurm_address(cls, value: str) -> str:
        url = urlsplit(value)
        if value and (url.scheme not in ("http", "https") or not url.hostname or url.username or url.query):
            raise ValueError("must be an address that begins with http:// or https://")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _slurm_needs_a_token(self) -> Self:
        if self.slurm_url and self.slurm_token_file is None:
            raise ValueError("PLATFORM_SLURM_URL needs PLATFORM_SLURM_TOKEN_FILE, slurmrestd's token")
        return self
