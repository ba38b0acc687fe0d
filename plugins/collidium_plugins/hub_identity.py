"""The identity provider ``hub``: the owner of a token, and the models that it sees, by the hub's API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from collidium import hookspecs
from collidium.contracts.identity import USERNAME, Identity, IdentityProvider, IdentityUnavailable
from collidium.runtime.http_client import HttpClient, NoResponse

if TYPE_CHECKING:
    import httpx

    from collidium.settings import Settings

#: Calls to the hub at one time; further ones wait their turn until the timeout.
CONNECTIONS: Final = 20
#: Calls about models, separate so that they do not delay sign-ins.
MODEL_CONNECTIONS: Final = 4
#: Maximum size of a response; those of whoami are smaller.
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
        return _owner(response.content)

    async def sees_model(self, token: str, model_repo: str) -> bool:
        response = await self._ask(self._models_http, f"{self._models_url}/{model_repo}", token)
        # A private repository of another account is answered as none at all.
        if (
            response.headers.get("X-Error-Code") == "RepoNotFound"
            or response.status_code == HTTPStatus.NOT_FOUND
        ):
            return False
        if response.status_code == HTTPStatus.OK:
            return True
        # Also a redirect: the repository has another name.
        raise IdentityUnavailable(f"the hub answered {response.status_code} about a model")

    async def close(self) -> None:
        await self._http.close()
        await self._models_http.close()

    async def _ask(self, http: HttpClient, url: str, token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            return await http.call("GET", url, ANSWER_BYTES, headers=headers)
        except NoResponse as error:
            raise IdentityUnavailable(f"the hub {error}") from None


def _owner(content: bytes) -> Identity | None:
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise IdentityUnavailable("the hub's answer to whoami is not JSON") from None
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise IdentityUnavailable("the hub's answer to whoami has no usable name")
    try:
        owner = Identity(
            name, read_only=_role(document) == "read", organisations=frozenset(_organisations(document))
        )
    except ValueError:
        raise IdentityUnavailable("the hub's answer to whoami has no usable name") from None
    # An organisation's token identifies no user.
    return owner if document.get("type", "user") == "user" else None


def _organisations(document: dict[str, Any]) -> Iterator[str]:
    """Names of the token's organisations, except those where the account may only read."""
    listed = document.get("orgs")
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and USERNAME.fullmatch(name) and item.get("roleInOrg") != "read":
            yield name


def _role(document: dict[str, Any]) -> object:
    """The role of the token, if the hub reports it: fine-grained tokens may or may not write."""
    auth = document.get("auth")
    token = auth.get("accessToken") if isinstance(auth, dict) else None
    return token.get("role") if isinstance(token, dict) else None
