"""Id tokens: the hub's word, signed, on who signed in where and for which sign-in."""

from __future__ import annotations

from typing import Any, Final

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from collidium.errors import UpstreamError

#: Those with two keys: what the hub signs with, nobody else has.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
#: Seconds by which two clocks may differ.
LEEWAY_SECONDS: Final = 60


class UnknownKey(UpstreamError):
    """Signed with a key that is not among those of the hub."""


def check(
    text: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str, access_token: str
) -> dict[str, Any]:
    """The claims of an id token that is the issuer's, for this client and this sign-in, and still holds.

    By OpenID Connect Core, 3.1.3.7. Raises UnknownKey, and UpstreamError for whatever else is wrong.
    """
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
        raise UnknownKey("the hub's id token is signed with a key that the hub does not name") from None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        # What is in such a token is anybody's guess, and the library reads it as a dictionary of good values.
        raise UpstreamError(f"the hub's id token is not accepted ({type(error).__name__})") from None
    return dict(claims)
