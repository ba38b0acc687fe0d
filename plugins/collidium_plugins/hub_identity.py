"""The identity provider ``hub``: identifies tokens by the hub's whoami, and checks access to models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from collidium import hookspecs
from collidium.contracts.identity import Identity, IdentityProvider, IdentityUnavailable
from collidium.hub.client import token_owner
from collidium.runtime.http_client import HttpClient, NoResponse

if TYPE_CHECKING:
    import httpx

    from collidium.settings import Settings

#: Concurrent calls to the hub; further ones wait until the timeout.
CONNECTIONS: Final = 20
#: The same for models, in a separate pool so that they do not delay sign-ins.
MODEL_CONNECTIONS: Final = 4
#: Maximum size of a response.
ANSWER_BYTES: Final = 256 * 1024

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")


@hookspecs.hookimpl
def collidium_identity_providers(settings: Settings) -> Sequence[IdentityProvider]:
    return [HubIdentity(settings.hub, timeout_seconds=settings.identity_timeout_seconds)]


class HubIdentity(IdentityProvider):
    """Identifies tokens by ``GET {hub_url}/api/whoami-v2``."""

    name = "hub"

    def __init__(self, hub_url: str, *, timeout_seconds: float) -> None:
        self._url = f"{hub_url}/api/whoami-v2"
        self._models_url = f"{hub_url}/api/models"
        self._http = HttpClient(timeout_seconds, CONNECTIONS)
        self._models_http = HttpClient(timeout_seconds, MODEL_CONNECTIONS)

    async def identify(self, token: str) -> Identity | None:
        if not _TOKEN.fullmatch(token):
            return None
        response = await self._ask(self._http, self._url, token)
        if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return None
        if response.status_code != HTTPStatus.OK:
            raise IdentityUnavailable(f"the hub answered {response.status_code} to whoami")
        try:
            return token_owner(response.content)
        except ValueError as error:
            raise IdentityUnavailable(f"the hub's response to whoami {error}") from None

    async def sees_model(self, token: str, model_repo: str) -> bool:
        response = await self._ask(self._models_http, f"{self._models_url}/{model_repo}", token)
        # Hubs report private repositories of others as missing.
        if (
            response.headers.get("X-Error-Code") == "RepoNotFound"
            or response.status_code == HTTPStatus.NOT_FOUND
        ):
            return False
        if response.status_code == HTTPStatus.OK:
            return True
        # Including redirects, for renamed repositories.
        raise IdentityUnavailable(f"the hub answered {response.status_code} for a model")

    async def close(self) -> None:
        await self._http.close()
        await self._models_http.close()

    async def _ask(self, http: HttpClient, url: str, token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            return await http.call("GET", url, ANSWER_BYTES, headers=headers)
        except NoResponse as error:
            raise IdentityUnavailable(f"the hub {error}") from None
