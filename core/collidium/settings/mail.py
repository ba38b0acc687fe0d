"""Settings of e-mail: the server that takes it, and who it is from."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

#: By scheme: the port of mail that is submitted, and of the same over TLS.
_PORTS: Final = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class MailServer:
    """A server that sends e-mail on."""

    host: str
    port: int
    #: Whether TLS begins with the connection, not by STARTTLS.
    tls: bool
    username: str | None
    password: str | None = field(repr=False)


class MailSettings(BaseSettings):
    """How notifications are sent as e-mail."""

    smtp_url: SecretStr | None = Field(
        None,
        description="Server that takes e-mail: smtp://user:password@host:port, with STARTTLS where it has "
        "that and always with a password, or smtps://; not set: no e-mail is sent.",
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
            raise ValueError("not a name and an address") from None
        senders = message["From"].addresses
        if value and (len(senders) != 1 or not (senders[0].username and senders[0].domain)):
            raise ValueError("not one address, as Collidium <noreply@example.org>")
        return value

    @model_validator(mode="after")
    def _mail_has_a_sender(self) -> Self:
        if self.smtp_url is not None and not self.mail_from:
            raise ValueError("PLATFORM_SMTP_URL needs PLATFORM_MAIL_FROM")
        return self

    @property
    def mail_server(self) -> MailServer | None:
        """The server of ``smtp_url``; None where no e-mail is sent."""
        return None if self.smtp_url is None else _parsed(self.smtp_url)


def _parsed(url: SecretStr) -> MailServer:
    """Raises ValueError without a word of the URL, which has a password."""
    try:
        parts = urlsplit(url.get_secret_value())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.path not in {"", "/"} or parts.query:
        raise ValueError("not of the form smtp://user:password@host:port or smtps://…")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("a user needs a password, and a password a user")
    username, password = (unquote(text) if text else None for text in (parts.username, parts.password))
    return MailServer(host, port or _PORTS[parts.scheme], parts.scheme == "smtps", username, password)
