"""General settings: files, database, addresses, hub, storage, plugins, identity, logs and e-mail."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from decimal import Decimal
from email.message import EmailMessage
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from collidium.settings.values import GIBIBYTE, CommaList, sqlite_path

#: The default ports of SMTP submission, by scheme.
_PORTS: Final = {"smtp": 587, "smtps": 465}
#: The database in the data directory, where no other is set.
SQLITE_FILE: Final = "collidium.sqlite3"


def default_data_dir() -> Path:
    """Return the default data directory, by the XDG convention."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "collidium"


class GeneralSettings(BaseSettings):
    """Settings of every process of the platform."""

    data_dir: Path = Field(default_factory=default_data_dir, description="Directory for all local files.")
    database_url: str = Field(
        "", description="sqlite:///path or postgres://user@host/name; empty: SQLite in the data directory."
    )
    host: str = Field("127.0.0.1", description="Address that `collidium serve` listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port that `collidium serve` listens on.")
    hub_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port that serves the local hub at its root; 0: none; not set: the server's port + 1.",
    )
    worker_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port of /metrics, /healthz and /readyz of `collidium worker`, at PLATFORM_HOST; not "
        "set: none.",
    )
    workers: int = Field(1, ge=1, le=64, description="Server processes that share the ports.")
    stop_delay_seconds: float = Field(
        0,
        ge=0,
        le=300,
        description="How long a stopping server still serves while /healthz and /readyz return 503, so that "
        "proxies stop sending requests.",
    )
    hub_quota_bytes: int = Field(
        100 * GIBIBYTE,
        ge=0,
        description="Maximum size of the repositories of an account on the local hub; also of the "
        "unpacked parts of its uploads by Xet, which are kept for 12 hours.",
    )
    hub_url: str = Field(
        "", description="Address of the hub; `local`, or empty with SQLite: the local hub, mounted at /hub."
    )
    identity: str = Field("hub", description="Identity provider that checks the hub's bearer tokens.")
    storage: str = Field("local", description="Storage backend for files.")
    storage_hub_repo: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*)?$",
        description="Dataset repository `namespace/name` of the hub for the files of storage `hub`; created "
        "as private if absent.",
    )
    storage_hub_token: SecretStr | None = Field(
        None, description="Token of the hub for the repository of storage `hub`."
    )
    storage_s3_url: str = Field(
        "",
        pattern=r"^(s3://[a-z0-9][a-z0-9.-]*[a-z0-9](/[A-Za-z0-9][A-Za-z0-9_.-]*)*)?$",
        description="`s3://bucket` or `s3://bucket/prefix` for the files of storage `s3`. Credentials are "
        "read as AWS's tools read them, for example from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    )
    storage_s3_endpoint: str = Field(
        "",
        pattern=r"^(https?://[^\s/@?#]+(/[^\s@?#]*)?)?$",
        description="Address of an S3-compatible server; empty: AWS, or AWS_ENDPOINT_URL.",
    )
    storage_s3_region: str = Field("", description="Region of the bucket; empty: AWS_REGION, or us-east-1.")
    storage_s3_path_style: bool = Field(
        True, description="Whether the bucket is in the path of URLs, not in the host name."
    )
    storage_s3_checksum: Literal["sha256", "crc64nvme", ""] = Field(
        "sha256", description="Checksum for the server to verify uploads; empty: none."
    )
    storage_s3_timeout_seconds: float = Field(
        60.0, gt=0, le=3600, description="Maximum seconds without a response of the store."
    )
    executor: str = Field("processes", description="Executor that scores blocks of events.")
    plugins_blocked: CommaList = Field(
        (), description="Entry points of plugins not to load, separated by commas."
    )
    admin_token: SecretStr | None = Field(
        None,
        validation_alias="ADMIN_TOKEN",
        description="Token of the first operator, with all scopes.",
    )
    metrics_token: SecretStr | None = Field(
        None,
        min_length=1,
        description="Token for /metrics, sent as `Authorization: Bearer TOKEN`; X-Admin-Token with an admin "
        "token is accepted too.",
    )
    cors_origins: CommaList = Field((), description="Origins allowed to call the API from browsers, or *.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level logged."
    )
    log_format: Literal["text", "json"] = Field("text", description="Format of log lines.")

    identity_cache_seconds: float = Field(
        60, ge=0, le=3600, description="How long the hub's answer about a token is cached."
    )
    identity_grace: float = Field(
        900,
        ge=0,
        le=86_400,
        description="Seconds that a token remains valid after its last check while the hub is unavailable.",
    )
    unknown_tokens_burst: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Unknown tokens that a server process checks for an address at once.",
    )
    unknown_tokens_per_minute: int = Field(
        60,
        ge=1,
        le=100_000,
        description="Unknown tokens that it checks for an address per minute after that.",
    )
    unknown_tokens_per_minute_in_all: int = Field(
        600,
        ge=1,
        le=1_000_000,
        description="Unknown tokens that a server process checks per minute in total.",
    )
    identity_timeout_seconds: float = Field(
        5, gt=0, le=60, description="Maximum time of the hub's response about a token."
    )
    retention_days: float = Field(
        90,
        ge=7,
        le=36_500,
        description="How long ended webhook deliveries, records and logs of ended jobs of this machine, and "
        "failed or cancelled models are kept; the ledger and submissions are never deleted.",
    )
    signup_grant: Decimal = Field(
        Decimal(10), ge=0, decimal_places=3, description="Credits granted at the first sign-in."
    )
    max_body_bytes: int = Field(64 * 1024, gt=0, description="Maximum size of a request body without a file.")
    body_timeout_seconds: float = Field(
        60,
        gt=0,
        le=86_400,
        description="How long a request body may stall, or a response body may be unread, before the "
        "connection is closed.",
    )

    @field_validator("hub_url")
    @classmethod
    def _without_credentials(cls, value: str) -> str:
        if "@" in value.partition("//")[2].partition("/")[0]:
            raise ValueError("must be an address without user name and password, because pages link to it")
        return "" if value == "local" else value.rstrip("/")

    @model_validator(mode="after")
    def _storage_is_complete(self) -> Self:
        if self.storage == "hub" and not (self.storage_hub_repo and self.storage_hub_token):
            raise ValueError(
                "PLATFORM_STORAGE=hub needs PLATFORM_STORAGE_HUB_REPO and PLATFORM_STORAGE_HUB_TOKEN"
            )
        if self.storage == "s3" and not self.storage_s3_url:
            raise ValueError("PLATFORM_STORAGE=s3 needs PLATFORM_STORAGE_S3_URL")
        return self

    @property
    def database(self) -> str:
        """The URL of the database, by default a file in the data directory."""
        return self.database_url or f"sqlite:///{self.data_dir / SQLITE_FILE}"

    @property
    def sqlite_file(self) -> Path | None:
        """The SQLite file; None for another database."""
        return sqlite_path(self.database)

    @property
    def uploads(self) -> Path:
        """The directory of uploads that are being received and scored."""
        return self.data_dir / "uploads"

    @property
    def hub(self) -> str:
        """The URL of the hub, by default the local one."""
        return self.hub_url or f"{self.base_url}/hub"

    @property
    def base_url(self) -> str:
        """The URL of the server on this machine."""
        return self._url(self.port)

    @property
    def hub_root_url(self) -> str:
        """The URL of the local hub at its own port; empty if it has none."""
        return self._url(self.hub_port) if self.hub_port else ""

    def _url(self, port: int) -> str:
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104 -- compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True, slots=True)
class MailServer:
    """A server for sending e-mail."""

    host: str
    port: int
    #: Whether the connection begins with TLS, not with STARTTLS.
    tls: bool
    username: str | None
    password: str | None = field(repr=False)


class MailSettings(BaseSettings):
    """Settings of e-mail notifications."""

    smtp_url: SecretStr | None = Field(
        None,
        description="Server for sending e-mail: smtp://user:password@host:port, with STARTTLS if available, "
        "and always with a password, or smtps://; not set: no e-mail is sent.",
    )
    mail_from: str = Field(
        "", description="Sender of e-mail: `Collidium <noreply@example.org>`, or the address alone."
    )

    @field_validator("smtp_url")
    @classmethod
    def _server(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _parsed(value)
        return value

    @field_validator("mail_from")
    @classmethod
    def _one_sender(cls, value: str) -> str:
        message = EmailMessage()
        try:
            message["From"] = value
        except ValueError:
            raise ValueError("must be a name and an address") from None
        senders = message["From"].addresses
        if value and (len(senders) != 1 or not (senders[0].username and senders[0].domain)):
            raise ValueError("must be one address, such as Collidium <noreply@example.org>")
        return value

    @model_validator(mode="after")
    def _mail_has_a_sender(self) -> Self:
        if self.smtp_url is not None and not self.mail_from:
            raise ValueError("PLATFORM_SMTP_URL needs PLATFORM_MAIL_FROM")
        return self

    @property
    def mail_server(self) -> MailServer | None:
        """The server of ``smtp_url``; None if no e-mail is sent."""
        return None if self.smtp_url is None else _parsed(self.smtp_url)


def _parsed(url: SecretStr) -> MailServer:
    """Parse a URL. The message of its ValueError does not contain the URL, which has a password."""
    try:
        parts = urlsplit(url.get_secret_value())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.path not in {"", "/"} or parts.query:
        raise ValueError("must have the form smtp://user:password@host:port or smtps://…")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("must have both user and password, or neither")
    username, password = (unquote(text) if text else None for text in (parts.username, parts.password))
    return MailServer(host, port or _PORTS[parts.scheme], parts.scheme == "smtps", username, password)
