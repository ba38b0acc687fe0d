"""The identity provider ``hub``: asks the hub's whoami who stands behind a token."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from collidium import hookspecs
from collidium.contracts.identity import Identity, IdentityProvider, IdentityUnavailable
from collidium.http_client import HttpClient, NoResponse

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Calls to the hub at one time; further ones wait their turn until the timeout.
CONNECTIONS: Final = 20
#: More than any whoami answer has; what is longer is something else.
ANSWER_BYTES: Final = 256 * 1024

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")


@hookspecs.hookimpl
def collidium_identity_providers(settings: Settings) -> Sequence[IdentityProvider]:
    return [HubIdentity(settings.hub, timeout_seconds=settings.identity_timeout_seconds)]


class HubIdentity(IdentityProvider):
    """Checks tokens with ``GET {hub_url}/api/whoami-v2``. Its connections live as long as this does."""

    name = "hub"

    def __init__(self, hub_url: str, *, timeout_seconds: float) -> None:
        self._url = f"{hub_url}/api/whoami-v2"
        self._http = HttpClient(timeout_seconds, CONNECTIONS)

    async def identify(self, token: str) -> Identity | None:
        if not _TOKEN.fullmatch(token):
            return None
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            response = await self._http.call("GET", self._url, ANSWER_BYTES, headers=headers)
        except NoResponse as error:
            raise IdentityUnavailable(f"the hub {error}") from None
        if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return None
        if response.status_code != HTTPStatus.OK:
            raise IdentityUnavailable(f"the hub answered {response.status_code} to whoami")
        return _owner(response.content)

    async def close(self) -> None:
        await self._http.close()


def _owner(content: bytes) -> Identity | None:
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise IdentityUnavailable("the hub's answer to whoami is not JSON") from None
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise IdentityUnavailable("the hub's answer to whoami has no usable name")
    try:
        owner = Identity(name, read_only=_role(document) == "read")
    except ValueError:
        raise IdentityUnavailable("the hub's answer to whoami has no usable name") from None
    # An organisation's token stands for nobody in particular.
    return owner if document.get("type", "user") == "user" else None


def _role(document: dict[str, Any]) -> object:
    """What the token may do, as far as the hub tells: fine-grained tokens may or may not write."""
    auth = document.get("auth")
    token = auth.get("accessToken") if isinstance(auth, dict) else None
    return token.get("role") if isinstance(token, dict) else None
