"""Id tokens and the key that signs them (OpenID Connect Core, section 2)."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from collidium_plugins.local_hub.accounts import Account, Scopes
from collidium_plugins.local_hub.database import Database
from collidium_plugins.local_hub.openid.grants import Grant

if TYPE_CHECKING:  # joserfc is imported by the first sign-in: it takes longer than all else of the hub
    from joserfc.jwk import RSAKey

ALGORITHM: Final = "RS256"
ID_TOKEN_SECONDS: Final = 3600

_NAME: Final = "id-tokens"
_BITS: Final = 2048


def signing_key(database: Database) -> RSAKey:
    """The key of this hub, made when it is first needed and the same for all processes."""
    from joserfc.jwk import RSAKey

    with database.reading() as db:
        kept = _kept(db)
    if kept is None:
        made = RSAKey.generate_key(_BITS, {"use": "sig", "alg": ALGORITHM}, auto_kid=True)
        document = json.dumps(made.as_dict(private=True))
        with database.writing() as db:
            db.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?)", (_NAME, document.encode()))
            kept = _kept(db)
    assert kept is not None, "inserted in this transaction"  # noqa: S101 -- for the type checker
    return RSAKey.import_key(json.loads(kept))


def _kept(db: sqlite3.Connection) -> bytes | None:
    row = db.execute("SELECT value FROM secrets WHERE name = ?", (_NAME,)).fetchone()
    return row[0] if row else None


def public_keys(database: Database) -> dict[str, Any]:
    """The public keys of the signature (RFC 7517)."""
    from joserfc.jwk import KeySet

    return dict(KeySet([signing_key(database)]).as_dict(private=False))


def id_token(key: RSAKey, issuer: str, grant: Grant, access_token: str) -> str:
    """The signed id token of a grant."""
    from joserfc import jwt

    present = int(time.time())
    claims = {
        "iss": issuer,
        "aud": grant.client_id,
        "iat": present,
        "exp": present + ID_TOKEN_SECONDS,
        "auth_time": int(datetime.fromisoformat(grant.granted_at).timestamp()),
        "at_hash": _half_hash(access_token),
        **about(grant.account, grant.scopes),
    }
    if grant.nonce is not None:
        claims["nonce"] = grant.nonce
    return jwt.encode({"alg": ALGORITHM, "kid": key.kid}, claims, key, [ALGORITHM])


def about(account: Account, scopes: Scopes | None) -> dict[str, Any]:
    """The claims about an account that these scopes allow."""
    claims: dict[str, Any] = {"sub": str(account.id)}
    if scopes is None or "profile" in scopes:
        claims |= {"name": account.display_name or account.name, "preferred_username": account.name}
    if account.email and (scopes is None or "email" in scopes):
        claims |= {"email": account.email, "email_verified": False}
    return claims


def _half_hash(text: str) -> str:
    """OpenID Connect Core, section 3.1.3.6."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:16]).rstrip(b"=").decode()
