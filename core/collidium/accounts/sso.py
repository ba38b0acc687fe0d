"""Accounts of single sign-on, and their tokens, which the platform issues.

Such an account is a subject of an issuer. It is never matched to another account by name or e-mail: its name
ends in :data:`~collidium.contracts.identity.SSO_SUFFIX`, which hub accounts cannot have.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tortoise.timezone import now

from collidium.accounts.models import Account, SsoAccount, SsoToken, name_key
from collidium.contracts.identity import DOMAIN, OWN_PREFIX, SSO_SUFFIX, USERNAME, Identity
from collidium.database import transactional
from collidium.database.statements import RowByKey
from collidium.errors import Forbidden, UpstreamError

#: How long the token for programs is valid.
TOKEN_DAYS: Final = 90
#: Maximum lengths of a subject (OpenID Connect Core, 2), and of a name without suffix.
LONGEST_SUBJECT: Final = 255
LONGEST_NAME: Final = 64
#: Maximum number of stored groups per account.
MAX_GROUPS: Final = 1000

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_by_digest: Final = RowByKey(SsoToken, "digest")
_by_name: Final = RowByKey(SsoAccount, "hub_username")


@transactional
async def recognise(
    issuer: str, subject: str, preferred: str, groups: Iterable[str], address: str = ""
) -> str:
    """Return the account name of a subject, and create the account on the first sign-in.

    Parameters
    ----------
    issuer, subject
        Validated claims of an id token.
    preferred
        The user name at the provider, from which the account name is derived.
    groups
        Groups at the provider; they replace those of the last sign-in. Groups that cannot be the name of an
        organisation are ignored.
    address
        E-mail address that the provider has verified. Only its domain is stored; it admits as the
        organisation ``@DOMAIN`` until a sign-in without it.

    Raises
    ------
    UpstreamError
        If the subject is invalid.
    """
    if not 0 < len(subject) <= LONGEST_SUBJECT or "\0" in subject:
        raise UpstreamError(f"a subject has 1 to {LONGEST_SUBJECT} characters, not {len(subject)}")
    own = sorted(filter(USERNAME.fullmatch, (f"{name}{SSO_SUFFIX}" for name in groups)))[:MAX_GROUPS]
    domain = address[address.rfind("@") :].lower()
    kept = " ".join([*own, domain] if DOMAIN.fullmatch(domain) else own)
    found = SsoAccount.filter(issuer=issuer, subject=subject)
    for name in _names(preferred):
        if await found.update(groups=kept, signed_in_at=now()):
            break
        # Does nothing after a concurrent sign-in of the subject, or of another one with that name.
        if not await Account.exists(name_key=name_key(name)):
            row = SsoAccount(
                issuer=issuer, subject=subject, hub_username=name, groups=kept, signed_in_at=now()
            )
            await SsoAccount.bulk_create([row], ignore_conflicts=True)
    return (await found.get()).hub_username


@transactional
async def issue(hub_username: str, *, session_seconds: float | None = None) -> tuple[str, datetime]:
    """Create a token and return it with its expiry: for a session, or the account's only one for programs.

    A new token for programs replaces the previous one. Raises Forbidden for accounts of the hub.
    """
    if await SsoAccount.select_for_update().get_or_none(hub_username=hub_username) is None:
        raise Forbidden(f"{hub_username} is an account of the hub: its tokens are made there")
    of_session = session_seconds is not None
    own = SsoToken.filter(hub_username=hub_username)
    if not of_session:
        await own.filter(of_session=False).delete()
    lasts = timedelta(seconds=session_seconds) if session_seconds is not None else timedelta(days=TOKEN_DAYS)
    token = OWN_PREFIX + secrets.token_urlsafe(32)
    row = SsoToken(
        digest=_digest(token), hub_username=hub_username, of_session=of_session, ends_at=now() + lasts
    )
    await row.save(force_create=True)
    return token, row.ends_at


async def token_ends_at(hub_username: str) -> datetime | None:
    """Return when the account's token for programs expires; None if it has none."""
    row = await SsoToken.filter(hub_username=hub_username, of_session=False, ends_at__gt=now()).first()
    return row.ends_at if row else None


async def account_of(token: str, issuer: str) -> SsoAccount | None:
    """Return the account of a valid token from the database, or None.

    Accounts of another issuer than the currently trusted one are ignored.
    """
    row = await _by_digest.get_or_none(_digest(token))
    if row is None or row.ends_at <= now():
        return None
    account = await _by_name.get_or_none(row.hub_username)
    return account if account and account.issuer == issuer else None


async def owner(token: str, issuer: str) -> Identity | None:
    """Return the identity of a token's owner, or None as :func:`account_of`."""
    account = await account_of(token, issuer)
    if account is None:
        return None
    return Identity(account.hub_username, memberships=frozenset(account.groups.split()), on_hub=False)


async def prune(moment: datetime) -> None:
    """Delete tokens that had expired at a moment."""
    await SsoToken.filter(ends_at__lte=moment).delete()


async def forget(hub_username: str) -> None:
    """Delete the identity and tokens of an account, in the transaction that erases it."""
    await SsoToken.filter(hub_username=hub_username).delete()
    await SsoAccount.filter(hub_username=hub_username).delete()


def _names(preferred: str) -> Iterable[str]:
    """Yield candidate names: ``ada.sso``, ``ada-2.sso`` to ``ada-9.sso``, then ``ada-1f5e03b2.sso``.

    Random suffixes bound the number of attempts if many users have the same name.
    """
    plain = _UNSAFE.sub("-", preferred[:LONGEST_NAME]).strip("._-").casefold() or "user"
    yield plain + SSO_SUFFIX
    for number in range(2, 10):
        yield f"{plain}-{number}{SSO_SUFFIX}"
    while True:
        yield f"{plain}-{secrets.token_hex(4)}{SSO_SUFFIX}"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
