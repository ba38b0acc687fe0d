"""Webhooks: registration with a signing secret, and validation of URLs, whose hosts must be public."""

from __future__ import annotations

import asyncio
import base64
import re
import secrets as randomness
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

import httpx
from tortoise.timezone import now

from collidium import records
from collidium.database import in_chunks, transactional
from collidium.errors import Conflict, InvalidInput, NotFound
from collidium.outbox import deliveries
from collidium.outbox.models import Delivery, OutboxEvent, Recipient, Webhook
from collidium.runtime.look_ups import LookUps, Resolve
from collidium.runtime.public_addresses import is_public

if TYPE_CHECKING:
    from collidium.secrets import Secrets
    from collidium.settings import Settings


#: The look-ups for registrations, whose callers wait for the response.
look_up: Final[Resolve] = LookUps().look_up

LONGEST_URL: Final = 2000
HTTPS_PORT: Final = 443
LAST_PORT: Final = 65_535
#: The form of what :func:`canonical_url` accepts, for documents: it also validates host, port and length.
HTTPS: Final = re.compile(r"[Hh][Tt][Tt][Pp][Ss]://@?[^\s/?#@\x00-\x1f\x7f]+([/?][^#\x00-\x1f\x7f]*)?#?")
#: A host's name, or an IPv4 address.
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
#: Timeout of the look-up of a host while a caller waits.
LOOK_UP_SECONDS: Final = 5.0
#: Standard Webhooks requires 24 to 64 random bytes.
SECRET_BYTES: Final = 32


class Refused(Exception):
    """No event is sent to this URL. The message gives the reason, without addresses of hosts."""


async def addresses_of(
    host: str, port: int, account_id: int | None, *, private: bool, resolve: Resolve, seconds: float
) -> list[str]:
    """Look up the addresses of ``host``, on behalf of an account or of none.

    Raises Refused if there is none or any is not allowed, Unavailable and TooManyRequests.
    """
    try:
        async with asyncio.timeout(seconds):
            addresses = list(await resolve(host, port, account_id))
    except TimeoutError:
        raise Refused("its host cannot be looked up now") from None
    except (OSError, UnicodeError):
        raise Refused("its host cannot be found") from None
    if not addresses:
        raise Refused("its host cannot be found")
    if not private and not all(map(is_public, addresses)):
        raise Refused("its host leads to an address that is not public")
    return addresses


def canonical_url(url: str, *, field: str = "webhook_url") -> str:
    """Return the normalised URL. Raises InvalidInput for ``field`` if its form is not allowed.

    Its host is not looked up, so the result depends on the text alone.
    """
    try:
        return str(_parsed(url))
    except Refused as refused:
        raise _unusable(field, refused) from None


async def require_reachable(
    url: str,
    settings: Settings,
    *,
    account_id: int | None = None,
    field: str = "webhook_url",
    resolve: Resolve = look_up,
) -> None:
    """Raise InvalidInput if the host of a URL has no addresses, or any that are not public.

    This is checked again before each delivery. Raises TooManyRequests while another look-up for the account
    is running, and Unavailable if there are too many.
    """
    try:
        parsed = _parsed(url)
        await addresses_of(
            host_of(parsed),
            parsed.port or HTTPS_PORT,
            account_id,
            private=settings.webhook_private_addresses,
            resolve=resolve,
            seconds=LOOK_UP_SECONDS,
        )
    except Refused as refused:
        raise _unusable(field, refused) from None


def _unusable(field: str, refused: Refused) -> InvalidInput:
    problem = {"field": field, "detail": str(refused)}
    return InvalidInput(f"{field} cannot be used: {refused}", errors=[problem])


def host_of(url: httpx.URL) -> str:
    """Return the host as resolvers and certificates use it."""
    return url.raw_host.decode("ascii").removesuffix(".")


def _is_host(text: str) -> bool:
    if ":" not in text:
        return _NAME.fullmatch(text) is not None
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _parsed(url: str) -> httpx.URL:
    if len(url) > LONGEST_URL:
        raise Refused(f"it is longer than {LONGEST_URL} characters")
    try:
        # Twice: after HTTPS:// in capitals, the first keeps a redundant :443.
        parsed = httpx.URL(str(httpx.URL(url)))
    except (httpx.InvalidURL, ValueError):  # ValueError for text that cannot be encoded
        raise Refused("it is not a URL") from None
    if parsed.scheme != "https" or not _is_host(host_of(parsed)):
        raise Refused("it must begin with https:// and name a host")
    if parsed.userinfo:
        raise Refused("it must not hold a user name or a password")
    if parsed.port is not None and not 1 <= parsed.port <= LAST_PORT:
        raise Refused(f"its port must be 1 to {LAST_PORT}")
    if parsed.fragment:
        raise Refused("it must not have a fragment (#)")
    if len(str(parsed)) > LONGEST_URL:
        raise Refused(f"it is longer than {LONGEST_URL} characters")
    return parsed


@transactional
async def register(
    account_id: int,
    secrets: Secrets,
    *,
    url: str | None = None,
    keep_url: bool = False,
    rotate_secret: bool = False,
) -> records.Webhook:
    """Set an account's webhook; create a signing secret if there is none, or for ``rotate_secret``.

    ``url`` must be canonical and reachable (:func:`canonical_url`, :func:`require_reachable`); ``keep_url``
    leaves the current one.
    """
    secret = _new_secret()
    sealed = secrets.encrypt(secret)
    # Insert first: of two concurrent first calls that read and then create, one would fail.
    row = Webhook(account_id=account_id, secret=sealed, created_at=now())
    await Webhook.bulk_create([row], ignore_conflicts=True)
    webhook = await Webhook.select_for_update().get_or_none(account_id=account_id)
    if webhook is None:
        raise Conflict("the webhook was removed at the same moment; set it again")
    if rotate_secret:
        webhook.secret = sealed
    if not keep_url:
        webhook.url = url
    await webhook.save(update_fields=["secret", "url"])
    return records.Webhook(webhook.url, webhook.created_at, secret if webhook.secret == sealed else None)


async def find(account_id: int) -> records.Webhook:
    """Return the account's webhook. Raises NotFound."""
    webhook = await Webhook.get_or_none(account_id=account_id)
    if webhook is None:
        raise NotFound("there is no webhook: set one with PUT /v1/me/webhook")
    return records.Webhook(webhook.url, webhook.created_at)


@transactional
async def remove(account_id: int) -> bool:
    """Delete an account's webhook, give up its pending deliveries; return whether there was a webhook."""
    removed = await Webhook.filter(account_id=account_id).delete()
    await deliveries.give_up_all(account_id, "the webhook was removed", mail=False)
    return removed > 0


@transactional
async def forget(account_id: int) -> None:
    """Delete an account's webhook, e-mail address and deliveries, and the events that only it received."""
    sent = Delivery.filter(account_id=account_id)
    events = await sent.values_list("event_id", flat=True)
    await sent.delete()
    for ids in in_chunks(events):
        await OutboxEvent.filter(id__in=ids, deliveries__id__isnull=True).delete()
    await Recipient.filter(account_id=account_id).delete()
    await Webhook.filter(account_id=account_id).delete()


async def require_secret(account_id: int) -> None:
    """Raise InvalidInput for an account without a signing secret."""
    if not await Webhook.exists(account_id=account_id):
        detail = (
            "webhook_url: there is no signing secret yet; make one with PUT /v1/me/webhook (without url it "
            "makes only the secret)"
        )
        raise InvalidInput(detail, errors=[{"field": "webhook_url", "detail": "no signing secret yet"}])


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(randomness.token_bytes(SECRET_BYTES)).decode("ascii")
