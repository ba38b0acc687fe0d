"""The operators' secret of a fresh machine."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click
from pydantic import SecretStr

from collidium.data_directory import make_private
from collidium.errors import ConfigurationError
from collidium.settings import Settings

FILE = "admin-token"


def ensure_admin_token(settings: Settings) -> Settings:
    """The settings with an admin token: the one that is set, else the data directory's, made when absent.

    Says where the token is, never what it is. Raises ConfigurationError for a file that holds none.
    """
    if settings.admin_token is not None:
        return settings
    path = settings.data_dir / FILE
    if _make(path):
        click.echo(f"A new admin token is in {path}", err=True)
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ConfigurationError(f"the admin token in {path} is empty; delete the file to get a new one")
    return settings.model_copy(update={"admin_token": SecretStr(token)})


def _make(path: Path) -> bool:
    """Write a new token unless there is a file already; it appears whole, and readable by its owner alone."""
    make_private(path.parent)
    if path.exists():
        return False
    beside = path.with_name(f".{FILE}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        # Unlike a rename, a link never replaces the token of a server that starts at the same moment.
        path.hardlink_to(beside)
    except FileExistsError:
        return False
    finally:
        beside.unlink()
    return True
