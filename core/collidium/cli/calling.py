"""The client as commands use it: for the server and the user that the environment names."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collidium.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

#: The settings that clients read; anything else is looked at more closely.
OF_CLIENTS = frozenset({"PLATFORM_BACKEND", "PLATFORM_HUB_URL"})


def client(token: str | None = None) -> Client:
    """A client; raises ConfigurationError when the environment has settings that do not exist."""
    from collidium.client import Client

    check_environment()
    return Client(token=token)


def key_option(command: Command) -> Command:
    """Add ``--idempotency-key`` to a command that changes something."""
    return click.option(
        "--idempotency-key",
        metavar="KEY",
        help="Repeat a command whose response was lost: done once for each key; default: a new key.",
    )(command)


def check_environment() -> None:
    """Raises ConfigurationError when the environment has settings that do not exist."""
    if any_settings():
        from collidium import settings

        settings.load()


def any_settings() -> bool:
    """Whether the environment has a setting that is not a client's; reading all takes longer than a call."""
    return any(name.startswith("PLATFORM_") and name not in OF_CLIENTS for name in os.environ)
