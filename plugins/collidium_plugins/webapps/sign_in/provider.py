"""An OpenID provider, such as the hub: its discovery document, its keys, and its token endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cachetools import TTLCache

from collidium.errors import Unavailable, UpstreamError
from collidium.runtime.http_client import HttpClient, NoResponse
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:  # imported by the first sign-in
    from joserfc.jwk import KeySet

DISCOVERY: Final = "/.well-known/openid-configuration"
#: How long the document and the keys are cached, and the shortest time between two looks for a new key.
KEPT_SECONDS: Final = 600.0
LOOK_AGAIN_SECONDS: Final = 10.0
#: For the whole of one answer; and more than any of them has.
TIMEOUT_SECONDS: Final = 10.0
ANSWER_BYTES: Final = 256 * 1024
CONNECTIONS: Final = 10


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of a provider's sign-in (OpenID Connect Discovery, 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    #: The scopes that it lists; empty: it lists none.
    scopes: frozenset[str] = frozenset()


class Provider:
    """Asks the provider whose issuer is ``url``, through connections that live as long as this does.

    ``setting`` names it to operators.
    """

    def __init__(self, url: str, setting: str = "PLATFORM_HUB_URL") -> None:
        self.url = url
        self._setting = setting
        self._http = HttpClient(TIMEOUT_SECONDS, CONNECTIONS)
        self._documents: SharedCalls[None, Endpoints] = SharedCalls(TTLCache(1, KEPT_SECONDS))
        self._asking_keys: SharedCalls[str, KeySet] = SharedCalls()
        self._keys: KeySet | None = None
        self._keys_since = 0.0

    async def close(self) -> None:
        """Give back the connections. Idempotent."""
        await self._documents.close()
        await self._asking_keys.close()
        await self._http.close()

    async def endpoints(self) -> Endpoints:
        """Where the provider signs people in. Raises Unavailable, and UpstreamError for a wrong document."""
        return await self._documents.run(None, self._discover)

    async def keys(self, *, anew: bool = False) -> KeySet:
        """The keys of the provider; ``anew`` where one was missing. Raises as :meth:`endpoints`."""
        endpoints = await self.endpoints()
        age = monotonic() - self._keys_since
        if self._keys is None or age > (LOOK_AGAIN_SECONDS if anew else KEPT_SECONDS):
            return await self._asking_keys.run(endpoints.jwks_uri, lambda: self._ask_keys(endpoints.jwks_uri))
        return self._keys

    async def token(self, body: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Send the token endpoint a form; the status and the document of its answer. Raises Unavailable."""
        endpoints = await self.endpoints()
        form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return await self._ask("POST", endpoints.token_endpoint, form, body)

    async def _discover(self) -> Endpoints:
        _, document = await self._ask("GET", self.url.rstrip("/") + DISCOVERY)
        return read_endpoints(document, self.url, self._setting)

    async def _ask_keys(self, url: str) -> KeySet:
        _, document = await self._ask("GET", url)
        self._keys = _read_keys(document)
        self._keys_since = monotonic()
        return self._keys

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        try:
            response = await self._http.call(
                method,
                url,
                ANSWER_BYTES,
                headers={"Accept": "application/json", **(headers or {})},
                content=body,
            )
        except NoResponse as error:
            raise _away(str(error)) from None
        status, content = response.status_code, response.content
        if status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise _away(f"answers {status}")
        if len(content) > ANSWER_BYTES:
            raise UpstreamError("the identity provider's answer has no end")
        return status, _document(content, status)


def read_endpoints(document: Mapping[str, Any], issuer: str, setting: str) -> Endpoints:
    """The endpoints in a discovery document, which has to be the issuer's own.

    Raises UpstreamError for another issuer, and for addresses neither of the issuer nor encrypted: what goes
    there are codes and tokens.
    """
    if document.get("issuer") != issuer:
        raise UpstreamError(
            f"the identity provider names another issuer than itself; operators: check {setting}"
        )
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    addresses = {name: document.get(name) for name in names}
    for name, address in addresses.items():
        if not (isinstance(address, str) and _is_safe(address, issuer)):
            raise UpstreamError(f"the identity provider's {name} is not an address to send secrets to")
    scopes = document.get("scopes_supported")
    listed = frozenset(map(str, scopes)) if isinstance(scopes, list) else frozenset[str]()
    return Endpoints(issuer, **{name: str(address) for name, address in addresses.items()}, scopes=listed)


def _is_safe(address: str, issuer: str) -> bool:
    try:
        parts, own = urlsplit(address), urlsplit(issuer)
    except ValueError:
        return False
    if parts.fragment or "@" in parts.netloc or not parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme, parts.netloc) == (own.scheme, own.netloc)


def _read_keys(document: dict[str, Any]) -> KeySet:
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        return KeySet.import_key_set({"keys": document["keys"]})
    except (JoseError, ValueError, KeyError, TypeError, AttributeError):
        raise UpstreamError("the identity provider's keys cannot be read") from None


def _document(content: bytes, status: int) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise UpstreamError(f"the identity provider answered {status} with something else than a JSON object")
    return document


def _away(what: str) -> Unavailable:
    return Unavailable(f"the identity provider {what}; try again soon")
