"""Signs an authorization request for its way through the browser, so that it returns unchanged."""

from __future__ import annotations

import time
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from collidium_plugins.local_hub.openid.requests import AuthorizationRequest, InvalidRedirectURI
from collidium_plugins.local_hub.scopes import read_scopes, write_scopes

#: How long the consent page may stay open.
VALID_SECONDS: Final = 600

_ALGORITHM: Final = "HS256"


def seal(key: bytes, request: AuthorizationRequest) -> str:
    """The request as a signed text that returns with the user's decision."""
    claims: dict[str, Any] = {
        "client_id": request.client_id,
        "redirect_uri": request.redirect_uri,
        "scope": write_scopes(request.scopes),
        "code_challenge": request.code_challenge,
        "state": request.state,
        "nonce": request.nonce,
        "exp": int(time.time()) + VALID_SECONDS,
    }
    return jwt.encode({"alg": _ALGORITHM}, claims, OctKey.import_key(key), [_ALGORITHM])


def unseal(key: bytes, ticket: str) -> AuthorizationRequest:
    """The request of a ticket; raises InvalidRedirectURI for one that is not of this hub, or too old."""
    try:
        claims = jwt.decode(ticket, OctKey.import_key(key), [_ALGORITHM]).claims
        jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
    except (JoseError, UnicodeError):
        raise InvalidRedirectURI(
            "This page was open for too long, or was not made by this hub. "
            "Go back to the application and sign in again."
        ) from None
    return AuthorizationRequest(
        claims["client_id"],
        claims["redirect_uri"],
        read_scopes(claims["scope"]),
        claims["code_challenge"],
        claims["state"],
        claims["nonce"],
    )
