"""OAuth grants, their codes and tokens, and OpenID Connect id tokens (OpenID Connect Core, section 2).

Functions that take ``db`` are part of the caller's transaction.

All that follows from a consent hangs on one row: a code or token that is used twice, or with a wrong proof,
ends it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from collidium_plugins.local_hub.accounts import (
    COLUMNS,
    HubAccount,
    Scopes,
    digest,
    read_scopes,
    write_scopes,
)
from collidium_plugins.local_hub.openid.requests import AuthorizationRequest
from collidium_plugins.local_hub.store import Database, find_secret, later, now, shared_secret

if TYPE_CHECKING:
    from joserfc.jwk import RSAKey

CODE_SECONDS: Final = 60
ACCESS_SECONDS: Final = 8 * 3600
#: How long an unused application stays signed in.
REFRESH_SECONDS: Final = 30 * 24 * 3600

_SECRET_BYTES: Final = 32

ALGORITHM: Final = "RS256"
ID_TOKEN_SECONDS: Final = 3600

_KEY_NAME: Final = "id-tokens"
_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class Grant:
    """An account's consent to an application."""

    id: int
    account: HubAccount
    client_id: str
    scopes: Scopes
    nonce: str | None
    granted_at: str


@dataclass(frozen=True, slots=True)
class SingleUseToken:
    """A code or a refresh token. Codes are bound to a redirect URI and a PKCE challenge."""

    client_id: str
    redirect_uri: str | None
    code_challenge: str | None

    def is_of(self, client_id: str, redirect_uri: str, verifier: str) -> bool:
        """Whether a code was made for this application, address and PKCE verifier (RFC 7636, section 4.6)."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        return (
            self.client_id == client_id
            and self.redirect_uri == redirect_uri
            and hmac.compare_digest((self.code_challenge or "").encode(), challenge)
        )


@dataclass(frozen=True, slots=True)
class Tokens:
    """Access and refresh token of an application. Only their hashes are stored."""

    access: str
    refresh: str
    scopes: Scopes


def allow(db: sqlite3.Connection, account: HubAccount, request: AuthorizationRequest) -> str:
    """Record a grant and return its code."""
    expires_at = later(CODE_SECONDS)
    grant = begin(db, account, request.client_id, request.scopes, request.nonce, expires_at)
    code = secrets.token_urlsafe(_SECRET_BYTES)
    db.execute(
        "INSERT INTO single_use_tokens (sha256, grant_id, kind, redirect_uri, code_challenge, expires_at) "
        "VALUES (?, ?, 'code', ?, ?, ?)",
        (digest(code), grant.id, request.redirect_uri, request.code_challenge, expires_at),
    )
    return code


def begin(
    db: sqlite3.Connection,
    account: HubAccount,
    client_id: str,
    scopes: Scopes,
    nonce: str | None = None,
    expires_at: str = "",
) -> Grant:
    """Record a grant, which expires at ``expires_at`` unless tokens are issued for it."""
    _delete_expired(db)
    granted_at = now()
    made = db.execute(
        "INSERT INTO grants (account_id, client_id, scopes, nonce, granted_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (account.id, client_id, write_scopes(scopes), nonce, granted_at, expires_at or granted_at),
    )
    return Grant(int(made.lastrowid or 0), account, client_id, scopes, nonce, granted_at)


def redeem(
    db: sqlite3.Connection, kind: str, text: str, is_valid: Callable[[SingleUseToken], bool]
) -> Grant | None:
    """Use up a code or refresh token and return its grant; None if it is not valid.

    A token used twice, or by the wrong client, may be stolen: this deletes its grant with all tokens of it
    (RFC 6749, section 4.1.2; RFC 9700, section 4.14.2). So the caller must commit in either case.
    """
    row = db.execute(
        f"SELECT {COLUMNS}, v.redirect_uri, v.code_challenge, v.expires_at, v.used_at, g.id AS grant_id, "  # noqa: S608 -- constant names
        "g.client_id, g.scopes, g.nonce, g.granted_at "
        "FROM single_use_tokens v JOIN grants g ON g.id = v.grant_id JOIN accounts a ON a.id = g.account_id "
        "WHERE v.sha256 = ? AND v.kind = ?",
        (digest(text), kind),
    ).fetchone()
    if row is None:
        return None
    token = SingleUseToken(row["client_id"], row["redirect_uri"], row["code_challenge"])
    if row["used_at"] is not None or row["expires_at"] <= now() or not is_valid(token):
        db.execute("DELETE FROM grants WHERE id = ?", (row["grant_id"],))
        return None
    db.execute("UPDATE single_use_tokens SET used_at = ? WHERE sha256 = ?", (now(), digest(text)))
    account = HubAccount(*row[:5])
    scopes = read_scopes(row["scopes"])
    return Grant(row["grant_id"], account, row["client_id"], scopes, row["nonce"], row["granted_at"])


def issue(db: sqlite3.Connection, grant: Grant) -> Tokens:
    """Issue new tokens of a grant. Earlier access tokens stay valid until they expire."""
    access = f"hub_oauth_{secrets.token_urlsafe(_SECRET_BYTES)}"
    refresh = f"hub_refresh_{secrets.token_urlsafe(_SECRET_BYTES)}"
    refresh_until = later(REFRESH_SECONDS)
    db.execute(
        "INSERT INTO tokens (sha256, account_id, label, created_at, expires_at, scopes, grant_id) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            digest(access),
            grant.account.id,
            grant.client_id,
            now(),
            later(ACCESS_SECONDS),
            write_scopes(grant.scopes),
            grant.id,
        ),
    )
    db.execute(
        "INSERT INTO single_use_tokens (sha256, grant_id, kind, expires_at) VALUES (?, ?, 'refresh', ?)",
        (digest(refresh), grant.id, refresh_until),
    )
    db.execute("UPDATE grants SET expires_at = ? WHERE id = ?", (refresh_until, grant.id))
    return Tokens(access, refresh, grant.scopes)


def _delete_expired(db: sqlite3.Connection) -> None:
    """Delete expired grants and tokens. Used codes and refresh tokens stay as long as their grant."""
    db.execute("DELETE FROM grants WHERE expires_at <= ?", (now(),))
    db.execute("DELETE FROM tokens WHERE expires_at <= ?", (now(),))


def signing_key(database: Database) -> RSAKey:
    """Return the RSA key that signs id tokens, made on first use and shared by all processes."""
    from joserfc.jwk import RSAKey

    with database.reading() as db:
        document = find_secret(db, _KEY_NAME)
    if document is None:
        # Before the transaction, as it takes long and other writers would wait.
        made = RSAKey.generate_key(_BITS, {"use": "sig", "alg": ALGORITHM}, auto_kid=True)
        with database.writing() as db:
            document = shared_secret(db, _KEY_NAME, json.dumps(made.as_dict(private=True)).encode())
    return RSAKey.import_key(json.loads(document))


def public_keys(database: Database) -> dict[str, Any]:
    """Return the hub's JSON Web Key Set (RFC 7517)."""
    from joserfc.jwk import KeySet

    return dict(KeySet([signing_key(database)]).as_dict(private=False))


def id_token(key: RSAKey, issuer: str, grant: Grant, access_token: str) -> str:
    """Return the signed id token of a grant."""
    from joserfc import jwt

    present = int(time.time())
    claims = {
        "iss": issuer,
        "aud": grant.client_id,
        "iat": present,
        "exp": present + ID_TOKEN_SECONDS,
        "auth_time": int(datetime.fromisoformat(grant.granted_at).timestamp()),
        "at_hash": _at_hash(access_token),
        **user_claims(grant.account, grant.scopes),
    }
    if grant.nonce is not None:
        claims["nonce"] = grant.nonce
    return jwt.encode({"alg": ALGORITHM, "kid": key.kid}, claims, key, [ALGORITHM])


def user_claims(account: HubAccount, scopes: Scopes | None) -> dict[str, Any]:
    """Return the OpenID claims about an account that these scopes include."""
    claims: dict[str, Any] = {"sub": str(account.id)}
    if scopes is None or "profile" in scopes:
        claims |= {"name": account.display_name or account.name, "preferred_username": account.name}
    if account.email and (scopes is None or "email" in scopes):
        claims |= {"email": account.email, "email_verified": False}
    return claims


def _at_hash(access_token: str) -> str:
    """OpenID Connect Core, section 3.1.3.6."""
    return base64.urlsafe_b64encode(hashlib.sha256(access_token.encode()).digest()[:16]).rstrip(b"=").decode()
