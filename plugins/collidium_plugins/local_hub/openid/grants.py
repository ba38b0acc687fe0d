"""Grants, and the codes and tokens made from them. Every function is part of a transaction."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from collidium_plugins.local_hub.accounts import COLUMNS, Account, Scopes, digest, read_scopes, write_scopes
from collidium_plugins.local_hub.database import later, now
from collidium_plugins.local_hub.openid.requests import AuthorizationRequest

CODE_SECONDS: Final = 60
ACCESS_SECONDS: Final = 8 * 3600
#: How long an unused application stays signed in.
REFRESH_SECONDS: Final = 30 * 24 * 3600

_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Grant:
    """What an account allowed an application, once."""

    id: int
    account: Account
    client_id: str
    scopes: Scopes
    nonce: str | None
    granted_at: str


@dataclass(frozen=True, slots=True)
class SingleUseToken:
    """A code or a refresh token; codes are bound to a redirect URI and a PKCE challenge."""

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
    """The tokens that an application receives; they are not shown again."""

    access: str
    refresh: str
    scopes: Scopes


def allow(db: sqlite3.Connection, account: Account, request: AuthorizationRequest) -> str:
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
    account: Account,
    client_id: str,
    scopes: Scopes,
    nonce: str | None = None,
    expires_at: str = "",
) -> Grant:
    """Record a grant that ends then, unless tokens are issued."""
    _sweep(db)
    granted_at = now()
    made = db.execute(
        "INSERT INTO grants (account_id, client_id, scopes, nonce, granted_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (account.id, client_id, write_scopes(scopes), nonce, granted_at, expires_at or granted_at),
    )
    return Grant(int(made.lastrowid or 0), account, client_id, scopes, nonce, granted_at)


def redeem(
    db: sqlite3.Connection, kind: str, text: str, fits: Callable[[SingleUseToken], bool]
) -> Grant | None:
    """Use up a code or refresh token and return its grant; None if it is not valid.

    One that is used twice, or by the wrong client, was stolen: its grant ends with all tokens made from it
    (RFC 6749, section 4.1.2; RFC 9700, section 4.14.2). So commit the transaction in either case.
    """
    row = db.execute(
        f"SELECT {COLUMNS}, v.redirect_uri, v.code_challenge, v.expires_at, v.used_at, g.id AS grant_id, "  # noqa: S608
        "g.client_id, g.scopes, g.nonce, g.granted_at "
        "FROM single_use_tokens v JOIN grants g ON g.id = v.grant_id JOIN accounts a ON a.id = g.account_id "
        "WHERE v.sha256 = ? AND v.kind = ?",
        (digest(text), kind),
    ).fetchone()
    if row is None:
        return None
    token = SingleUseToken(row["client_id"], row["redirect_uri"], row["code_challenge"])
    if row["used_at"] is not None or row["expires_at"] <= now() or not fits(token):
        db.execute("DELETE FROM grants WHERE id = ?", (row["grant_id"],))
        return None
    db.execute("UPDATE single_use_tokens SET used_at = ? WHERE sha256 = ?", (now(), digest(text)))
    account = Account(*row[:5])
    scopes = read_scopes(row["scopes"])
    return Grant(row["grant_id"], account, row["client_id"], scopes, row["nonce"], row["granted_at"])


def issue(db: sqlite3.Connection, grant: Grant) -> Tokens:
    """New tokens of a grant; its earlier access tokens stay until they expire."""
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


def _sweep(db: sqlite3.Connection) -> None:
    """Remove what has expired; used codes and refresh tokens stay as long as their grant."""
    db.execute("DELETE FROM grants WHERE expires_at <= ?", (now(),))
    db.execute("DELETE FROM tokens WHERE expires_at <= ?", (now(),))
