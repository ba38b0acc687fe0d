"""The local hub, mounted at ``/hub``: a hub for development, demonstrations and tests.

Every ``collidium`` command imports this module, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collidium import hookspecs

if TYPE_CHECKING:
    import click
    from quart import Blueprint

    from collidium.settings import Settings


@hookspecs.hookimpl
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:
    from collidium_plugins.local_hub.openid.requests import client_of
    from collidium_plugins.local_hub.web import make_blueprint

    directory, client = settings.data_dir / "hub", client_of(settings)
    return [make_blueprint(directory, client, settings.trusted_proxies, settings.hub_quota_bytes)]


@hookspecs.hookimpl
def collidium_commands() -> Sequence[click.Command]:
    from collidium_plugins.local_hub.commands import user

    return [user]
