"""Registration of webhooks: their URL and signing secret."""

from __future__ import annotations

import base64
import secrets as randomness
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import records
from collidium.database import transactional
from collidium.errors import Conflict, InvalidInput, NotFound
from collidium.outbox import deliveries
from collidium.outbox.models import Delivery, OutboxEvent, Recipient, Webhook

if TYPE_CHECKING:
    from collidium.secrets import Secrets

#: Standard Webhooks requires 24 to 64 random bytes.
SECRET_BYTES: Final = 32


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

    ``url`` must be canonical and reachable (``outbox.urls``); ``keep_url`` leaves the current one.
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
    await OutboxEvent.filter(id__in=events, deliveries__id__isnull=True).delete()
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
