"""Accounts of the hub, their tokens and scopes, and rate limits for invalid tokens."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cachetools import TTLCache

from collidium.errors import Conflict, InvalidInput
from collidium.runtime.limits import network_of
from collidium_plugins.local_hub.names import is_account_name
from collidium_plugins.local_hub.store import now

#: Scopes, and the description of each on the consent page.
SCOPES: Final = {
    "openid": "Know that it is you who signs in",
    "profile": "See your account's name",
    "email": "See your email address",
    "read-repos": "Read your repositories, private ones too",
    "write-repos": "Change your repositories",
    "manage-repos": "Make and delete repositories under your name",
}

#: Scopes implied by others.
_IMPLIED: Final = {
    "write-repos": frozenset({"read-repos"}),
    "manage-repos": frozenset({"read-repos", "write-repos"}),
}

#: Granted scopes. A token of the account itself has no scopes and full access.
Scopes = frozenset[str]
#: Invalid tokens per minute, from one address and from all addresses.
OF_ONE: Final = 10
OF_ALL: Final = 300
WINDOW_SECONDS: Final = 60
_ADDRESSES: Final = 10_000


def read_scopes(text: str) -> Scopes:
    """Parse space-separated scopes (RFC 6749, section 3.3)."""
    return frozenset(text.split())


def write_scopes(scopes: Scopes) -> str:
    """Join scopes by spaces, in the order of :data:`SCOPES`."""
    return " ".join(scope for scope in SCOPES if scope in scopes)


def allow(granted: Scopes | None, wanted: str) -> bool:
    """Whether granted scopes include ``wanted``, directly or implied; None includes everything."""
    return granted is None or any(
        wanted == scope or wanted in _IMPLIED.get(scope, frozenset()) for scope in granted
    )


@dataclass(frozen=True, slots=True)
class HubAccount:
    id: int
    name: str
    created_at: str
    #: Empty if not given, like the email.
    display_name: str
    email: str


#: The columns of an :class:`Account`.
COLUMNS: Final = "a.id, a.name, a.created_at, a.display_name, a.email"


@dataclass(frozen=True, slots=True)
class HubCaller(HubAccount):
    """An account, authenticated by one of its tokens."""

    #: The application, or how the account's own token was made.
    token_label: str
    token_created_at: str
    #: None for full access.
    scopes: Scopes | None

    def may(self, scope: str) -> bool:
        """Whether the token has this scope."""
        return allow(self.scopes, scope)


def bad_name(name: str) -> str:
    """Return an error message for an invalid account name."""
    return (
        f"an account cannot be named {name[:100]!r}: letters, digits and single - _ . inside, "
        "at most 96 characters, and not a reserved word"
    )


def add(db: sqlite3.Connection, name: str, display_name: str = "", email: str = "") -> HubAccount:
    """Create an account; raises InvalidInput for an invalid name and Conflict for an existing one."""
    if not is_account_name(name):
        raise InvalidInput(bad_name(name))
    existing = find(db, name)
    if existing is not None:
        raise Conflict(f"there is an account {existing.name!r} already; --new-token makes a token for it")
    db.execute(
        "INSERT INTO accounts (name, created_at, display_name, email) VALUES (?, ?, ?, ?)",
        (name, now(), display_name, email),
    )
    account = find(db, name)
    assert account is not None, "inserted in this transaction"  # noqa: S101 -- for the type checker
    return account


def find(db: sqlite3.Connection, name: str) -> HubAccount | None:
    """Return the account with this name, ignoring case."""
    row = db.execute(f"SELECT {COLUMNS} FROM accounts a WHERE name = ?", (name,)).fetchone()  # noqa: S608 -- constant names
    return HubAccount(*row) if row else None


def list_accounts(db: sqlite3.Connection) -> list[tuple[HubAccount, str | None]]:
    """Return all accounts by name, with the expiry of the unused sign-in link of each."""
    rows = db.execute(
        f"SELECT {COLUMNS}, l.expires_at FROM accounts a LEFT JOIN sign_in_links l "  # noqa: S608 -- constant names
        "ON l.account_id = a.id AND l.expires_at > ? ORDER BY a.name",
        (now(),),
    )
    return [(HubAccount(*account), expires_at) for *account, expires_at in rows]


def count_repositories(db: sqlite3.Connection, account: HubAccount) -> int:
    """Return the number of repositories that the account owns."""
    (count,) = db.execute("SELECT count(*) FROM repos WHERE owner_id = ?", (account.id,)).fetchone()
    return int(count)


def revoke_all(db: sqlite3.Connection, account: HubAccount) -> None:
    """Revoke the tokens, sign-ins and links of an account."""
    for table in ("grants", "tokens", "sign_in_links"):
        db.execute(f"DELETE FROM {table} WHERE account_id = ?", (account.id,))  # noqa: S608 -- constant names


def make_token(db: sqlite3.Connection, account: HubAccount) -> str:
    """Return a new token. Revokes the earlier ones, and sign-ins, which a stolen token may have made."""
    token = f"hub_{secrets.token_urlsafe(30)}"
    revoke_all(db, account)
    db.execute(
        "INSERT INTO tokens (sha256, account_id, label, created_at) VALUES (?, ?, 'user add', ?)",
        (digest(token), account.id, now()),
    )
    return token


def owner_of(db: sqlite3.Connection, token: str) -> HubCaller | None:
    """Return the owner of a token; None for an invalid or expired one."""
    row = db.execute(
        f"SELECT {COLUMNS}, t.label, t.created_at, t.scopes "  # noqa: S608 -- constants
        "FROM tokens t JOIN accounts a ON a.id = t.account_id "
        "WHERE t.sha256 = ? AND (t.expires_at IS NULL OR t.expires_at > ?)",
        (digest(token), now()),
    ).fetchone()
    if row is None:
        return None
    *known, scopes = row
    values = [*known, None if scopes is None else read_scopes(scopes)]
    return HubCaller(*values)


def digest(token: str) -> str:
    """Return the hash under which a secret is stored."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class Attempts:
    """Counts invalid tokens in this process. Tokens cannot be guessed; this limits the load of trying."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._of: TTLCache[str, int] = TTLCache[str, int](_ADDRESSES, WINDOW_SECONDS, timer)
        self._all: TTLCache[None, int] = TTLCache[None, int](1, WINDOW_SECONDS, timer)

    def are_too_many(self, address: str) -> bool:
        """Whether the address has to wait for :data:`WINDOW_SECONDS`.

        An address without invalid tokens never has to, whatever others send.
        """
        failed = self._of.get(network_of(address), 0)
        return failed >= OF_ONE or (failed > 0 and self._all.get(None, 0) >= OF_ALL)

    def count(self, address: str) -> None:
        """Count an invalid token."""
        network = network_of(address)
        self._of[network] = self._of.get(network, 0) + 1
        self._all[None] = self._all.get(None, 0) + 1
