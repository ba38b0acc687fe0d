"""Every setting, declared once: type, default, and a line of help.

Settings come from the environment or a ``.env`` file, prefix ``PLATFORM_``; the fixed names without the
prefix are ``ADMIN_TOKEN`` (the operators' secret) and, for clients, ``HF_TOKEN``.
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from collidium.contracts.executor import Limits
from collidium.errors import ConfigurationError

PREFIX = "PLATFORM_"
#: Read by clients, not by the server, so no setting; still a name that may stand in the environment.
CLIENT_NAMES = frozenset({"PLATFORM_BACKEND"})

MEBIBYTE = 1024**2
GIBIBYTE = 1024**3

CommaList = Annotated[tuple[str, ...], NoDecode]


def default_data_dir() -> Path:
    """Where the platform keeps its files on this machine, by the XDG convention."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "collidium"


class Settings(BaseSettings):
    """The platform's settings; :func:`load` reads them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True, validate_default=True
    )

    data_dir: Path = Field(default_factory=default_data_dir, description="Directory for all local files.")
    database_url: str = Field(
        "", description="sqlite:///path or postgres://user@host/name; empty: SQLite in the data directory."
    )
    host: str = Field("127.0.0.1", description="Address that `collidium serve` listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port that `collidium serve` listens on.")
    workers: int = Field(1, ge=1, le=64, description="Server processes that share the port.")
    hub_url: str = Field("", description="Address of the hub; empty: the local hub, mounted at /hub.")
    identity: str = Field("hub", description="Identity provider that checks bearer tokens.")
    storage: str = Field("local", description="Storage backend that keeps files.")
    executor: str = Field("processes", description="Executor that scores blocks of events.")
    plugins_blocked: CommaList = Field((), description="Entry points not to load, separated by commas.")
    admin_token: SecretStr | None = Field(
        None, validation_alias="ADMIN_TOKEN", description="Secret of the admin endpoints; closed without it."
    )
    cors_origins: CommaList = Field((), description="Origins allowed to call from browsers, or *.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level logged.")
    log_format: Literal["text", "json"] = Field("text", description="How log lines are written.")

    identity_cache_seconds: float = Field(
        60, ge=0, le=3600, description="How long a checked token is trusted without asking the hub again."
    )
    identity_timeout_seconds: float = Field(
        5, gt=0, le=60, description="How long to wait for the hub's answer about a token."
    )
    signup_grant: Decimal = Field(
        Decimal(10), ge=0, decimal_places=3, description="Credits granted at the first sign-in."
    )
    benchmark_reward: Decimal = Field(
        Decimal(50), ge=0, decimal_places=3, description="Credits for a new best, unless the task says."
    )
    submissions_per_day: int = Field(
        10, ge=1, le=10_000, description="Submissions kept of one account for one task in a UTC day."
    )
    rewards_per_day: int = Field(
        3, ge=0, le=10_000, description="Rewards of one account for one metric of a task in a UTC day."
    )
    evaluations_in_flight: int = Field(
        4, ge=1, le=1000, description="Files of one account that a server process takes at once."
    )
    max_submission_bytes: int = Field(
        8 * GIBIBYTE, gt=0, description="Largest file of predictions that is taken."
    )
    max_body_bytes: int = Field(MEBIBYTE, gt=0, description="Largest body of any other request.")
    body_timeout_seconds: float = Field(
        60, gt=0, description="How long a body may stand still before its request is given up."
    )
    scoring_workers: int = Field(
        0, ge=0, le=256, description="Processes that score; 0: one for each core of the machine."
    )
    scoring_memory_bytes: int = Field(
        2 * GIBIBYTE, ge=256 * MEBIBYTE, description="Memory that one scoring process may use."
    )
    scoring_seconds: float = Field(
        300, gt=0, description="Time that one block of events may take to be scored."
    )
    evaluation_seconds: float = Field(
        1800, gt=0, description="Time that a whole file may take to be scored, waiting for its turn included."
    )

    @field_validator("plugins_blocked", "cors_origins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("hub_url")
    @classmethod
    def _no_trailing_slash(cls, value: str) -> str:
        return value.rstrip("/")

    @property
    def database(self) -> str:
        """The database's URL, the default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'collidium.sqlite3'}"

    @property
    def scoring_limits(self) -> Limits:
        """What one call of a scoring process may use."""
        return Limits(self.scoring_memory_bytes, self.scoring_seconds)

    @property
    def uploads(self) -> Path:
        """Where bodies lie while they are received and scored."""
        return self.data_dir / "uploads"

    @property
    def hub(self) -> str:
        """The hub's URL, the default filled in."""
        return self.hub_url or f"{self.base_url}/hub"

    @property
    def base_url(self) -> str:
        """Where this server is reached from this machine."""
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104 -- compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def load(**overrides: object) -> Settings:
    """Read the settings; ``overrides`` (field names) win over environment and file.

    Raises :class:`~collidium.errors.ConfigurationError` that lists every unknown name and bad value.
    """
    problems = []
    settings = None
    try:
        settings = Settings(**overrides)  # type: ignore[arg-type]  # checked by pydantic
    except ValidationError as error:
        problems += [f"{_variable(item['loc'])}: {item['msg']}" for item in error.errors(include_input=False)]
    problems += [f"{name}: no such setting" for name in _unknown_names()]
    if settings is None or problems:
        raise ConfigurationError(
            "settings: " + "; ".join(problems), errors=[{"detail": problem} for problem in problems]
        )
    return settings


def _variable(location: tuple[int | str, ...]) -> str:
    name = str(location[0]) if location else ""
    return name if name.isupper() else PREFIX + name.upper()


def _unknown_names() -> list[str]:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | CLIENT_NAMES
    names = set(os.environ) | set(_names_in_env_file())
    return sorted(name for name in names if name.startswith(PREFIX) and name.upper() not in known)


def _names_in_env_file() -> list[str]:
    from dotenv import dotenv_values

    return list(dotenv_values(".env")) if Path(".env").is_file() else []
