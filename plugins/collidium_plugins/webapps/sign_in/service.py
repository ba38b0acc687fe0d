"""All that signing in needs, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from collidium.secrets import Secrets, open_secrets
from collidium.settings import Settings
from collidium_plugins.webapps.sign_in.departures import Departures
from collidium_plugins.webapps.sign_in.flow import Client
from collidium_plugins.webapps.sign_in.hub import Hub
from collidium_plugins.webapps.sign_in.limits import Limits
from collidium_plugins.webapps.sign_in.sessions import Sessions
from collidium_plugins.webapps.sign_in.store import Store

#: Below the data directory.
FILE: Final = "web/sessions.sqlite3"
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class SignIn:
    """What the handlers of a sign-in work with."""

    sessions: Sessions
    departures: Departures
    limits: Limits
    client: Client


@asynccontextmanager
async def opened(settings: Settings, hub_url: str) -> AsyncIterator[SignIn]:
    """Signing in with the hub at that address, as this machine reaches it."""
    store, secrets = await asyncio.to_thread(_open, settings)
    hub = Hub(hub_url)
    secret = settings.oauth_client_secret.get_secret_value() if settings.oauth_client_secret else None
    try:
        yield SignIn(
            Sessions(
                store,
                secrets,
                idle_seconds=settings.session_idle_hours * _HOUR,
                longest_seconds=settings.session_hours * _HOUR,
            ),
            Departures(store),
            Limits(store, settings.sign_ins_per_minute),
            Client(
                hub,
                settings.oauth_client_id,
                secret,
                settings.oauth_scopes,
            ),
        )
    finally:
        await hub.close()
        await asyncio.to_thread(store.close)


def _open(settings: Settings) -> tuple[Store, Secrets]:
    return Store(settings.data_dir / FILE), open_secrets(settings)
