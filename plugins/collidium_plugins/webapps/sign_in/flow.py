"""OAuth's authorization code with PKCE (RFC 6749, 4.1; RFC 7636; RFC 9700), and OpenID Connect's id token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from collidium.errors import BadRequest, Forbidden, UpstreamError
from collidium.sessions import PendingSignIn
from collidium_plugins.webapps.sign_in.provider import Provider

if TYPE_CHECKING:  # authlib and joserfc are imported by the first sign-in
    from joserfc.jwk import KeySet

#: Characters of the provider's error messages that are shown.
LONGEST_ERROR: Final = 200
#: Asymmetric ones alone: only the provider has the key that signs.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
#: Seconds by which two clocks may differ.
LEEWAY_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Grant:
    """A token to act with, and the seconds for which it is valid, if known."""

    token: str = field(repr=False)
    expires_in: float | None
    scopes: tuple[str, ...] = ()
    #: What the checked id token claims.
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Client:
    """The pages as a provider knows them."""

    provider: Provider
    client_id: str
    secret: str | None = field(repr=False)

    async def authorization_url(self, sign_in: PendingSignIn) -> str:
        """The provider's address where the user agrees to it. Raises as :meth:`Provider.endpoints`."""
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

    async def redeem(self, sign_in: PendingSignIn, code: str) -> Grant:
        """The grant for a code, from the provider and for this sign-in.

        Raises BadRequest for a code that is none or was used, and Unavailable and UpstreamError.
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

    async def _check(self, id_token: object, sign_in: PendingSignIn, grant: Grant) -> Mapping[str, Any]:
        if not isinstance(id_token, str):
            raise UpstreamError("the identity provider's answer has no id token")
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
            return check(await self.provider.keys(anew=True))


def denial(error: str, description: str) -> BadRequest | Forbidden | UpstreamError:
    """The error that the provider sent instead of a code (RFC 6749, 4.1.2.1)."""
    reason = f": {description[:LONGEST_ERROR]}" if description else ""
    if error == "access_denied":
        return Forbidden(f"you were not signed in: access was denied at the identity provider{reason}")
    return UpstreamError(f"the identity provider did not sign you in ({error[:LONGEST_ERROR]}){reason}")


def _refusal(answer: Mapping[str, Any]) -> BadRequest | UpstreamError:
    if answer.get("error") == "invalid_grant":
        return BadRequest("this sign-in was used or took too long; sign in again")
    # Its description may repeat what was sent.
    return UpstreamError(f"the identity provider gave no token ({str(answer.get('error'))[:LONGEST_ERROR]})")


def _grant(answer: Mapping[str, Any], asked: tuple[str, ...]) -> Grant:
    token, kind = answer.get("access_token"), answer.get("token_type")
    if not isinstance(token, str) or not token or str(kind).lower() != "bearer":
        raise UpstreamError("the identity provider's answer holds no bearer token")
    granted = answer.get("scope")  # left out where it is what was asked for (RFC 6749, 5.1)
    scopes = tuple(granted.split()) if isinstance(granted, str) else asked
    seconds = answer.get("expires_in")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return Grant(token, None, scopes)
    return Grant(token, float(seconds), scopes)


# -- id tokens ----------------------------------------------------------------------------------------


class UnknownKey(UpstreamError):
    """Signed with a key that the provider does not publish."""


def check_id_token(
    text: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str, access_token: str
) -> dict[str, Any]:
    """The claims of an id token that is the issuer's, for this client and this sign-in, and still holds.

    By OpenID Connect Core, 3.1.3.7. Raises UnknownKey, and UpstreamError for whatever else is wrong.
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
            "the id token is signed with a key that the identity provider does not name"
        ) from None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        # The library reads the claims as if their types were right.
        raise UpstreamError(
            f"the identity provider's id token is not accepted ({type(error).__name__})"
        ) from None
    return dict(claims)
