"""Calls about the caller's account and its webhook."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, endpoint, given
from collidium.records import Account, Page, Transaction, Webhook, WebhookDelivery, WebhookRemoved

PATH = "/v1/me/webhook"


class AccountCalls:
    """Calls about the caller's account and its webhook."""

    @endpoint
    def me(self) -> Call[Account]:
        """The account behind the token; the first call signs it up."""
        return Call("GET", "/v1/me", single(Account))

    @endpoint
    def transactions(self, *, limit: int | None = None, cursor: str | None = None) -> Call[Page[Transaction]]:
        """A page of the account's ledger, newest first."""
        return Call(
            "GET", "/v1/me/transactions", listed(Transaction), query=given(limit=limit, cursor=cursor)
        )

    @endpoint
    def set_webhook(self, url: str | None = None, *, rotate_secret: bool = False) -> Call[Webhook]:
        """Get notified at an HTTPS address of requests that end; a new secret is in the response.

        Without ``url`` the address stays as it is, none at first: that creates only the secret.
        """
        return Call("PUT", PATH, single(Webhook), json=given(rotate_secret=rotate_secret, url=url))

    @endpoint
    def webhook(self) -> Call[Webhook]:
        """Where the account is notified."""
        return Call("GET", PATH, single(Webhook))

    @endpoint
    def remove_webhook(self) -> Call[WebhookRemoved]:
        """Remove the webhook with its secret."""
        return Call("DELETE", PATH, single(WebhookRemoved))

    @endpoint
    def webhook_deliveries(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[WebhookDelivery]]:
        """A page of deliveries, with the reason if one failed, newest first."""
        return Call(
            "GET", f"{PATH}/deliveries", listed(WebhookDelivery), query=given(limit=limit, cursor=cursor)
        )
