"""Notification settings of accounts, and their e-mail addresses: set, confirmed by a link, removed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.timezone import now

from collidium import records
from collidium.database import connection, transactional
from collidium.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from collidium.outbox import deliveries, events
from collidium.outbox.events import CONFIRM, MAIL, TYPES, Kind
from collidium.outbox.models import Delivery, OutboxEvent, Recipient
from collidium.secrets import LostKey

if TYPE_CHECKING:
    from collidium.secrets import Secrets
    from collidium.settings import Settings

#: After this many consecutive permanent rejections nothing more is sent to an address.
MAX_REJECTIONS: Final = 3
#: Maximum number of confirmation links that an account may have sent in a day: each may go to someone else.
CONFIRMATIONS_A_DAY: Final = 5
#: The same of one address, by all accounts together.
CONFIRMATIONS_OF_ADDRESS: Final = 5
#: Key of the advisory lock of these limits on PostgreSQL; an arbitrary constant.
_CONFIRMATION_LOCK: Final = 0x636F6E66
#: How long a confirmation link is valid.
CONFIRMABLE: Final = timedelta(days=3)
LONGEST_ADDRESS: Final = 254
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#: No quotes, comments or address literals; a domain must have a dot.
ADDRESS: Final = re.compile(rf"{_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})+")
#: No encoded words, which the email package decodes.
_ADDRESS: Final = re.compile(rf"(?=[^@]{{1,64}}@)(?!.*=\?){ADDRESS.pattern}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_=-]{1,2000}")

Action = Literal["confirm", "unsubscribe"]


class Link(NamedTuple):
    """The action of a link in an e-mail, which its reader confirms on a page."""

    action: Action
    account_id: int
    address: str


async def find(account_id: int) -> records.Notifications:
    """Return the notification settings of an account."""
    return _view(await Recipient.get_or_none(account_id=account_id) or Recipient(account_id=account_id))


@transactional
async def change(
    account_id: int,
    settings: Settings,
    *,
    kinds: Mapping[Kind, bool],
    email: str | None = None,
    keep_email: bool = False,
) -> records.Notifications:
    """Switch kinds of events on and off, and set the e-mail address, to which a confirmation link is sent.

    Raises InvalidInput for an invalid address, TooManyRequests after too many links, and Conflict if the
    platform sends no e-mail.
    """
    if email is not None and (len(email) > LONGEST_ADDRESS or not _ADDRESS.fullmatch(email)):
        problem = {"field": "email", "detail": "not an e-mail address such as anna@example.org"}
        raise InvalidInput(f"email: {problem['detail']}", errors=[problem])
    await Recipient.bulk_create([Recipient(account_id=account_id)], ignore_conflicts=True)
    row = await Recipient.select_for_update().get(account_id=account_id)
    off = set(row.off)  # also kinds that only a newer release knows
    for kind, is_on in kinds.items():
        (off.discard if is_on else off.add)(kind)
    row.off = sorted(off)
    if not keep_email and (email != row.address or row.confirmed_at is None):
        row.address, row.confirmed_at, row.rejections = email, None, 0
        await deliveries.give_up_all(account_id, "the e-mail address was changed", mail=True)
        if email is not None:
            await _send_confirmation(account_id, email, settings)
    await row.save()
    return _view(row)


async def _send_confirmation(account_id: int, email: str, settings: Settings) -> None:
    if settings.smtp_url is None:
        raise Conflict("this server sends no e-mail; webhooks it has (PUT /v1/me/webhook)")
    day = timedelta(days=1)
    sent = Delivery.filter(account_id=account_id, event__type=CONFIRM, created_at__gt=now() - day)
    if await sent.count() >= CONFIRMATIONS_A_DAY:
        raise TooManyRequests(
            f"{CONFIRMATIONS_A_DAY} addresses a day are asked for confirmation",
            retry_after=int(day.total_seconds()),
        )
    mailbox = _mailbox(email)
    # Accounts that name an address at the same moment count each other.
    if not isinstance(connection(), SqliteClient):
        await connection().execute_query(f"SELECT pg_advisory_xact_lock({_CONFIRMATION_LOCK})")
    to_it = OutboxEvent.filter(reference=mailbox, type=CONFIRM, created_at__gt=now() - day)
    if await to_it.count() >= CONFIRMATIONS_OF_ADDRESS:
        raise TooManyRequests(
            f"{CONFIRMATIONS_OF_ADDRESS} links a day are sent to an address",
            retry_after=int(day.total_seconds()),
        )
    await events.write(CONFIRM, [(account_id, MAIL)], mailbox, {})


def _mailbox(email: str) -> str:
    """Return a hash of the mailbox of an address, without what follows a ``+`` before the ``@``."""
    name, _, domain = email.casefold().rpartition("@")
    return hashlib.sha256(f"{name.partition('+')[0]}@{domain}".encode()).hexdigest()


def _view(row: Recipient) -> records.Notifications:
    rejected = row.confirmed_at is None and row.rejections >= MAX_REJECTIONS
    return records.Notifications(
        email=row.address,
        confirmed_at=row.confirmed_at,
        problem="mail to it was rejected; set it again, or another one" if rejected else None,
        kinds={kind: kind not in row.off for kind in TYPES},
    )


# -- links ---------------------------------------------------------------------------------------------


def token_for(link: Link, secrets: Secrets, moment: datetime) -> str:
    """Return the token of a link, which proves that its bearer reads mail to the address."""
    ends = int((moment + CONFIRMABLE).timestamp())
    return secrets.encrypt(f"{link.action} {link.account_id} {ends} {link.address}")


def link_of(token: str, secrets: Secrets) -> Link:
    """Return the link of a token. Raises NotFound for an invalid token, and Conflict for an expired one."""
    try:
        text = secrets.decrypt(token) if _TOKEN.fullmatch(token) else ""
    except LostKey:
        text = ""
    match text.split(" "):
        case ["unsubscribe", account_id, _, address]:
            return Link("unsubscribe", int(account_id), address)
        case ["confirm", account_id, ends, address] if now().timestamp() <= int(ends):
            return Link("confirm", int(account_id), address)
        case ["confirm", *_]:
            raise Conflict("this link is not valid any more; set the address again to get another one")
    raise NotFound("this link is not valid: it may have been cut off")


@transactional
async def follow(link: Link) -> None:
    """Confirm or unsubscribe an address. Safe to repeat. Raises Conflict if it is not the current address."""
    row = await Recipient.select_for_update().get_or_none(account_id=link.account_id)
    is_set = row is not None and row.address == link.address
    if link.action == "unsubscribe":
        if row is not None and is_set:
            row.address = row.confirmed_at = None
            await row.save(update_fields=["address", "confirmed_at"])
            await deliveries.give_up_all(link.account_id, "unsubscribed", mail=True)
        return
    if row is None or not is_set:
        raise Conflict("the account has no or another address now")
    if row.confirmed_at is None:
        row.confirmed_at, row.rejections = now(), 0
        await row.save(update_fields=["confirmed_at", "rejections"])


# -- outcomes of e-mail ------------------------------------------------------------------------------------


async def accepted(account_id: int) -> None:
    """Record that the mail server accepted an e-mail to the account's address."""
    await Recipient.filter(account_id=account_id, rejections__gt=0).update(rejections=0)


@transactional
async def rejected(account_id: int, address: str) -> None:
    """Record a permanent rejection; after :data:`MAX_REJECTIONS` nothing more is sent to the address."""
    row = await Recipient.select_for_update().get_or_none(account_id=account_id, address=address)
    if row is None:
        return
    row.rejections += 1
    if row.rejections >= MAX_REJECTIONS:
        row.confirmed_at = None
        await deliveries.give_up_all(account_id, "the e-mail address is rejected", mail=True)
    await row.save(update_fields=["rejections", "confirmed_at"])
