"""A client of OpenID providers: authorization code with PKCE (RFC 6749, 7636 and 9700), and id tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cachetools import TTLCache

from collidium.errors import BadRequest, Forbidden, Unavailable, UpstreamError
from collidium.runtime.http_client import HttpClient, NoResponse
from collidium.runtime.shared_calls import SharedCalls
from collidium.sessions import BegunSignIn

if TYPE_CHECKING:  # authlib and joserfc are imported by the first sign-in
    from joserfc.jwk import KeySet

DISCOVERY: Final = "/.well-known/openid-configuration"
#: How long the discovery document and the keys are cached, and minimum interval to look for a new key.
KEPT_SECONDS: Final = 600.0
LOOK_AGAIN_SECONDS: Final = 10.0
#: Limits of a response.
TIMEOUT_SECONDS: Final = 10.0
ANSWER_BYTES: Final = 256 * 1024
CONNECTIONS: Final = 10

#: Maximum length of the provider's error messages.
ERROR_LENGTH: Final = 200
#: Asymmetric algorithms only.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
#: Maximum difference of clocks.
LEEWAY_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of a provider (OpenID Connect Discovery, 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    #: The listed scopes; providers need not list any.
    scopes: frozenset[str] = frozenset()


class OAuthProvider:
    """A client of the provider with issuer ``url``; messages name the ``setting`` of the issuer."""

    def __init__(self, url: str, setting: str = "PLATFORM_HUB_URL") -> None:
        self.url = url
        self._setting = setting
        self._http = HttpClient(TIMEOUT_SECONDS, CONNECTIONS)
        self._documents: SharedCalls[None, Endpoints] = SharedCalls(TTLCache(1, KEPT_SECONDS))
        self._asking_keys: SharedCalls[str, KeySet] = SharedCalls()
        self._keys: KeySet | None = None
        self._keys_since = 0.0

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._documents.close()
        await self._asking_keys.close()
        await self._http.close()

    async def endpoints(self) -> Endpoints:
        """Return the provider's endpoints. Raises Unavailable, and UpstreamError for an invalid document."""
        return await self._documents.run(None, self._discover)

    async def keys(self, *, refresh: bool = False) -> KeySet:
        """Return the provider's keys; ``refresh`` if one is missing. Raises as :meth:`endpoints`."""
        endpoints = await self.endpoints()
        age = monotonic() - self._keys_since
        if self._keys is None or age > (LOOK_AGAIN_SECONDS if refresh else KEPT_SECONDS):
            return await self._asking_keys.run(endpoints.jwks_uri, lambda: self._ask_keys(endpoints.jwks_uri))
        return self._keys

    async def token(self, body: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Post a form to the token endpoint; return status and document. Raises as :meth:`endpoints`."""
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
            raise _unavailable(str(error)) from None
        status, content = response.status_code, response.content
        if status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise _unavailable(f"answers {status}")
        if len(content) > ANSWER_BYTES:
            raise UpstreamError("the identity provider's response is too long")
        return status, _document(content, status)


def read_endpoints(document: Mapping[str, Any], issuer: str, setting: str) -> Endpoints:
    """Parse a discovery document.

    Raises UpstreamError for another issuer, and for endpoints that neither use https nor have the issuer's
    origin, as secrets are sent there.
    """
    if document.get("issuer") != issuer:
        raise UpstreamError(
            f"the identity provider names another issuer than itself; operators: check {setting}"
        )
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    addresses = {name: document.get(name) for name in names}
    for name, address in addresses.items():
        if not (isinstance(address, str) and _is_safe(address, issuer)):
            raise UpstreamError(f"the identity provider's {name} is not safe to send secrets to")
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
        raise UpstreamError(f"the identity provider answered {status} without a JSON object")
    return document


def _unavailable(what: str) -> Unavailable:
    return Unavailable(f"the identity provider {what}; try again soon")


@dataclass(frozen=True, slots=True)
class Grant:
    """An access token with its lifetime in seconds, if known."""

    token: str = field(repr=False)
    expires_in: float | None
    scopes: tuple[str, ...] = ()
    #: Claims of the validated id token.
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The pages' registration with a provider."""

    provider: OAuthProvider
    client_id: str
    secret: str | None = field(repr=False)

    async def authorization_url(self, sign_in: BegunSignIn) -> str:
        """Return the URL of the provider's consent page. Raises as :meth:`OAuthProvider.endpoints`."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        endpoints = await self.provider.endpoints()
        address = prepare_grant_uri(
            endpoints.authorization_endpoint,
            self.client_id,
            "code",
            redirect_uri=sign_in.redirect_uri,
            scope=list(dict.fromkeys(("openid", *sign_in.scopes))),
            state=sign_in.state,
            nonce=sign_in.nonce,
            code_challenge=create_s256_code_challenge(sign_in.verifier),
            code_challenge_method="S256",
        )
        return str(address)

    async def redeem(self, sign_in: BegunSignIn, code: str) -> Grant:
        """Exchange a code for a grant.

        Raises BadRequest for an invalid or used code, Unavailable and UpstreamError.
        """
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        body = prepare_token_request(
            "authorization_code",
            redirect_uri=sign_in.redirect_uri,
            code=code,
            code_verifier=sign_in.verifier,
        )
        method = "client_secret_basic" if self.secret else "none"
        _, headers, body = ClientAuth(self.client_id, self.secret, method).prepare("POST", "", {}, body)
        status, answer = await self.provider.token(body, headers)
        if status != 200:
            raise _refusal(answer)
        grant = _grant(answer, sign_in.scopes)
        return replace(grant, claims=await self._check(answer.get("id_token"), sign_in, grant))

    async def _check(self, id_token: object, sign_in: BegunSignIn, grant: Grant) -> Mapping[str, Any]:
        if not isinstance(id_token, str):
            raise UpstreamError("the identity provider's response has no id token")
        endpoints = await self.provider.endpoints()
        check = partial(
            check_id_token,
            id_token,
            issuer=endpoints.issuer,
            client_id=self.client_id,
            nonce=sign_in.nonce,
            access_token=grant.token,
        )
        try:
            return check(await self.provider.keys())
        except UnknownKey:
            # The provider may have a new key.
            return check(await self.provider.keys(refresh=True))


def denial(error: str, description: str) -> BadRequest | Forbidden | UpstreamError:
    """Convert the error that the provider sent instead of a code (RFC 6749, 4.1.2.1)."""
    reason = f": {description[:ERROR_LENGTH]}" if description else ""
    if error == "access_denied":
        return Forbidden(f"you were not signed in: access was denied at the identity provider{reason}")
    return UpstreamError(f"the identity provider did not sign you in ({error[:ERROR_LENGTH]}){reason}")


def _refusal(answer: Mapping[str, Any]) -> BadRequest | UpstreamError:
    if answer.get("error") == "invalid_grant":
        return BadRequest("this sign-in was used or took too long; sign in again")
    # Not with its description, which may repeat secrets.
    return UpstreamError(f"the identity provider gave no token ({str(answer.get('error'))[:ERROR_LENGTH]})")


def _grant(answer: Mapping[str, Any], asked: tuple[str, ...]) -> Grant:
    token, kind = answer.get("access_token"), answer.get("token_type")
    if not isinstance(token, str) or not token or str(kind).lower() != "bearer":
        raise UpstreamError("the identity provider's response has no bearer token")
    granted = answer.get("scope")  # omitted if all requested scopes are granted (RFC 6749, 5.1)
    scopes = tuple(granted.split()) if isinstance(granted, str) else asked
    seconds = answer.get("expires_in")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return Grant(token, None, scopes)
    return Grant(token, float(seconds), scopes)


# -- id tokens ----------------------------------------------------------------------------------------


class UnknownKey(UpstreamError):
    """The id token is signed with a key that the provider does not publish."""


def check_id_token(
    text: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str, access_token: str
) -> dict[str, Any]:
    """Validate an id token (OpenID Connect Core, 3.1.3.7) and return its claims.

    Raises UnknownKey, and UpstreamError for anything else that is wrong.
    """
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import InvalidKeyIdError, JoseError

    try:
        token = jwt.decode(text, keys, algorithms=ALGORITHMS)
        claims = CodeIDToken(
            token.claims,
            token.header,
            {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
            {"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(leeway=LEEWAY_SECONDS)
    except InvalidKeyIdError:
        raise UnknownKey(
            "the id token is signed with a key that the identity provider does not publish"
        ) from None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        # The library does not check the types of claims.
        raise UpstreamError(
            f"the identity provider's id token is not accepted ({type(error).__name__})"
        ) from None
    return dict(claims)
