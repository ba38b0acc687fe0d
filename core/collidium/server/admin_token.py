"""The operators' secret of a fresh machine."""

from __future__ import annotations

import secrets

import click
from pydantic import SecretStr

from collidium.errors import ConfigurationError
from collidium.files.data_directory import make_secret_file
from collidium.settings import Settings

FILE = "admin-token"


def ensure_admin_token(settings: Settings) -> Settings:
    """The settings with an admin token: the one that is set, else the data directory's, made when absent.

    Says where the token is, never what it is. Raises ConfigurationError for a file that holds none.
    """
    if settings.admin_token is not None:
        return settings
    path = settings.data_dir / FILE
    if make_secret_file(path, secrets.token_urlsafe(32)):
        click.echo(f"A new admin token is in {path}", err=True)
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ConfigurationError(f"the admin token in {path} is empty; delete the file to get a new one")
    return settings.model_copy(update={"admin_token": SecretStr(token)})
