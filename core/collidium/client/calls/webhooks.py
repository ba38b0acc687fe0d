"""Calls about the caller's webhook."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, paging
from collidium.records import Page, Webhook, WebhookDelivery, WebhookRemoved

PATH = "/v1/me/webhook"


def set_webhook(url: str | None, rotate_secret: bool) -> Call[Webhook]:
    # An address that is left out stays as it is.
    address = {} if url is None else {"url": url}
    return Call("PUT", PATH, single(Webhook), json={"rotate_secret": rotate_secret, **address})


def webhook() -> Call[Webhook]:
    return Call("GET", PATH, single(Webhook))


def remove_webhook() -> Call[WebhookRemoved]:
    return Call("DELETE", PATH, single(WebhookRemoved))


def webhook_deliveries(limit: int | None, cursor: str | None) -> Call[Page[WebhookDelivery]]:
    return Call("GET", f"{PATH}/deliveries", listed(WebhookDelivery), query=paging(limit, cursor))
