"""OAuth's authorization code with PKCE (RFC 6749, 4.1; RFC 7636; RFC 9700), as the hub's client."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from collidium.errors import BadRequest, Forbidden, UpstreamError
from collidium_plugins.webapps.sign_in import id_tokens
from collidium_plugins.webapps.sign_in.departures import Departure
from collidium_plugins.webapps.sign_in.hub import Hub

#: Characters of what the hub says of a refusal that are passed on.
LONGEST_SAYING: Final = 200


@dataclass(frozen=True, slots=True)
class Grant:
    """What the hub gave: a token to act with, and the seconds it holds, if it said."""

    token: str = field(repr=False)
    expires_in: float | None


@dataclass(frozen=True, slots=True)
class Client:
    """The pages as the hub knows them."""

    hub: Hub
    client_id: str
    secret: str | None = field(repr=False)
    scopes: Sequence[str]

    async def way_to_the_hub(self, departure: Departure) -> str:
        """The address at which somebody agrees to the sign-in. Raises Unavailable and UpstreamError."""
        provider = await self.hub.provider()
        address = prepare_grant_uri(
            provider.authorization_endpoint,
            self.client_id,
            "code",
            redirect_uri=departure.redirect_uri,
            scope=list(dict.fromkeys(("openid", *self.scopes))),
            state=departure.state,
            nonce=departure.nonce,
            code_challenge=create_s256_code_challenge(departure.verifier),
            code_challenge_method="S256",
        )
        return str(address)

    async def redeem(self, departure: Departure, code: str) -> Grant:
        """The token for a code, from the hub and for this sign-in.

        Raises BadRequest for a code that is none or was used, and Unavailable and UpstreamError.
        """
        body = prepare_token_request(
            "authorization_code",
            redirect_uri=departure.redirect_uri,
            code=code,
            code_verifier=departure.verifier,
        )
        method = "client_secret_basic" if self.secret else "none"
        _, headers, body = ClientAuth(self.client_id, self.secret, method).prepare("POST", "", {}, body)
        status, answer = await self.hub.token(body, headers)
        if status != 200:
            raise _refusal(answer)
        grant = _grant(answer)
        await self._check(answer.get("id_token"), departure, grant)
        return grant

    async def _check(self, id_token: object, departure: Departure, grant: Grant) -> None:
        if not isinstance(id_token, str):
            raise UpstreamError("the hub did not say who signed in: there is no id token")
        provider = await self.hub.provider()
        for anew in (False, True):
            try:
                id_tokens.check(
                    id_token,
                    await self.hub.keys(anew=anew),
                    issuer=provider.issuer,
                    client_id=self.client_id,
                    nonce=departure.nonce,
                    access_token=grant.token,
                )
            except id_tokens.UnknownKey:
                # The hub may have a new key since it was asked.
                if anew:
                    raise
            else:
                return


def denial(error: str, description: str) -> BadRequest | Forbidden | UpstreamError:
    """What the hub says instead of a code (RFC 6749, 4.1.2.1)."""
    said = f": {description[:LONGEST_SAYING]}" if description else ""
    if error == "access_denied":
        return Forbidden(f"you were not signed in, as the hub was told not to{said}")
    return UpstreamError(f"the hub did not sign you in ({error[:LONGEST_SAYING]}){said}")


def _refusal(answer: Mapping[str, Any]) -> BadRequest | UpstreamError:
    if answer.get("error") == "invalid_grant":
        return BadRequest("this sign-in was used or took too long; sign in again")
    # Its description may repeat what was sent.
    return UpstreamError(f"the hub gave no token ({str(answer.get('error'))[:LONGEST_SAYING]})")


def _grant(answer: Mapping[str, Any]) -> Grant:
    token, kind = answer.get("access_token"), answer.get("token_type")
    if not isinstance(token, str) or not token or str(kind).lower() != "bearer":
        raise UpstreamError("the hub's answer holds no bearer token")
    seconds = answer.get("expires_in")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return Grant(token, None)
    return Grant(token, float(seconds))
