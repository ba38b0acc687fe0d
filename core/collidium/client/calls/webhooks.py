"""Calls about the caller's webhook."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, paging
from collidium.records import Page, Webhook, WebhookDelivery, WebhookRemoved

PATH = "/v1/me/webhook"


def set_webhook(url: str | None = None, *, rotate_secret: bool = False) -> Call[Webhook]:
    """Be told at an HTTPS address when a request ends; the answer that makes the secret shows it.

    Without ``url`` the address stays as it is, none at first: that makes only the secret.
    """
    # An address that is left out stays as it is.
    address = {} if url is None else {"url": url}
    return Call("PUT", PATH, single(Webhook), json={"rotate_secret": rotate_secret, **address})


def webhook() -> Call[Webhook]:
    """Where the account is told."""
    return Call("GET", PATH, single(Webhook))


def remove_webhook() -> Call[WebhookRemoved]:
    """Be told nothing more; the secret is forgotten."""
    return Call("DELETE", PATH, single(WebhookRemoved))


def webhook_deliveries(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[WebhookDelivery]]:
    """A page of what was told, or was not and why, newest first."""
    return Call("GET", f"{PATH}/deliveries", listed(WebhookDelivery), query=paging(limit, cursor))
