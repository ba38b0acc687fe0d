"""Signed tokens that expire, for upload addresses and consent tickets: JSON Web Tokens with HS256."""

from __future__ import annotations

import time
from typing import Any, Final

_ALGORITHM: Final = "HS256"


def sign(key: bytes, claims: dict[str, Any], seconds: int) -> str:
    """Return a token with these claims that is valid for ``seconds``."""
    from joserfc import jwt
    from joserfc.jwk import OctKey

    expiring = claims | {"exp": int(time.time()) + seconds}
    return jwt.encode({"alg": _ALGORITHM}, expiring, OctKey.import_key(key), [_ALGORITHM])


def verify(key: bytes, token: str) -> dict[str, Any] | None:
    """Return the claims of a token; None if it was not signed with ``key`` or has expired."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import OctKey

    try:
        claims = jwt.decode(token, OctKey.import_key(key), [_ALGORITHM]).claims
        jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
    except (JoseError, UnicodeError):
        return None
    del claims["exp"]
    return claims
