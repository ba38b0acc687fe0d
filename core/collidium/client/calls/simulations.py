"""Calls about the caller's account, its notifications and its simulation requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, Unpack

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, endpoint, given, keyed, segment
from collidium.records import (
    Account,
    Estimate,
    Notifications,
    OrderLimits,
    OutputFile,
    Page,
    Preset,
    SimulationRequest,
    Transaction,
    Webhook,
    WebhookDelivery,
    WebhookRemoved,
)

_WEBHOOK = "/v1/me/webhook"
_NOTIFICATIONS = "/v1/me/notifications"


class NotificationChanges(TypedDict, total=False):
    """What to change of an account's notifications."""

    #: None removes it.
    email: str | None
    #: Whether kinds of events are sent; others stay as they are.
    kinds: Mapping[str, bool]


class AccountCalls:
    """Calls about the caller's account and how it is notified."""

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
        """Set the HTTPS address that is notified of requests that end.

        Parameters
        ----------
        url : str, optional
            Left out, the address stays as it is, none at first.
        rotate_secret : bool
            Create a new signing secret; the old one ends at once.

        Returns
        -------
        Webhook
            A new secret is shown only here.
        """
        return Call("PUT", _WEBHOOK, single(Webhook), json=given(rotate_secret=rotate_secret, url=url))

    @endpoint
    def webhook(self) -> Call[Webhook]:
        """Where the account is notified."""
        return Call("GET", _WEBHOOK, single(Webhook))

    @endpoint
    def remove_webhook(self) -> Call[WebhookRemoved]:
        """Remove the webhook with its secret."""
        return Call("DELETE", _WEBHOOK, single(WebhookRemoved))

    @endpoint
    def webhook_deliveries(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[WebhookDelivery]]:
        """A page of deliveries, with the reason if one failed, newest first."""
        return Call(
            "GET", f"{_WEBHOOK}/deliveries", listed(WebhookDelivery), query=given(limit=limit, cursor=cursor)
        )

    @endpoint
    def notifications(self) -> Call[Notifications]:
        """What the account is notified of, and its e-mail address."""
        return Call("GET", _NOTIFICATIONS, single(Notifications))

    @endpoint
    def set_notifications(self, **changes: Unpack[NotificationChanges]) -> Call[Notifications]:
        """Switch kinds of events on and off; set the e-mail address, which is sent a link to confirm it.

        Parameters
        ----------
        email : str or None, optional
            None removes the address.
        kinds : mapping of str to bool, optional
            For example ``{"deadline": False}``; ``notifications`` lists the kinds.
        """
        return Call("PATCH", _NOTIFICATIONS, single(Notifications), json={**changes})


class SimulationCalls:
    """Calls about simulation requests."""

    @endpoint
    def simulate(
        self,
        channel: str | None = None,
        events: int | None = None,
        pileup: int | None = None,
        *,
        seed: int | None = None,
        vary: str | None = None,
        preset: str | None = None,
        private: bool = False,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[SimulationRequest]:
        """Order events.

        Parameters
        ----------
        channel, events, pileup
            What is ordered, unless a preset is.
        seed : int, optional
            42 by default.
        vary : str, optional
            Systematic variation of the detector, as ``field=0.99,material=1.1``.
        preset : str, optional
            The name of an order, in place of the first three.
        private : bool
            Publish to a private repository.
        webhook_url : str, optional
            HTTPS address that is notified when the request ends.
        idempotency_key : str, optional
            An order is placed once for each key. Without one it gets a key of its own, under which it is
            sent again when the connection breaks.

        Returns
        -------
        SimulationRequest
            With ``cached``, an earlier request that made the same events: it cost nothing.

        Raises
        ------
        InvalidInput
            With all problems.
        PaymentRequired
            If the balance is too low.
        TooManyRequests
            If a limit of the account or of the month is reached.
        Conflict
            If the key was used for another order.
        """
        order = given(
            channel=channel, events=events, pileup=pileup, preset=preset, seed=seed, vary=vary or None
        )
        body = order | given(private=private or None, webhook_url=webhook_url)
        headers = keyed(idempotency_key)
        return Call("POST", "/v1/simulate", single(SimulationRequest), json=body, headers=headers)

    @endpoint
    def request(self, request_id: str) -> Call[SimulationRequest]:
        """A simulation request with its timeline."""
        return Call("GET", f"/v1/requests/{segment(request_id)}", single(SimulationRequest))

    @endpoint
    def requests(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[SimulationRequest]]:
        """List the account's simulation requests, newest first.

        Parameters
        ----------
        state : str, optional
            Only those in a state.
        limit, cursor
            The page.

        Returns
        -------
        Page of SimulationRequest
        """
        query = given(state=state, limit=limit, cursor=cursor)
        return Call("GET", "/v1/requests", listed(SimulationRequest), query=query)

    @endpoint
    def output(self, request_id: str) -> Call[Page[OutputFile]]:
        """The files of a completed request that the server keeps, also where no hub has them."""
        return Call("GET", f"/v1/requests/{segment(request_id)}/output", listed(OutputFile))

    @endpoint
    def cancel(self, request_id: str) -> Call[SimulationRequest]:
        """Cancel a simulation request; it ends when its job has stopped.

        Parameters
        ----------
        request_id : str

        Returns
        -------
        SimulationRequest

        Raises
        ------
        Conflict
            If there is nothing left to stop.
        """
        return Call("POST", f"/v1/requests/{segment(request_id)}/cancel", single(SimulationRequest))

    @endpoint
    def estimate(self, channel: str, events: int, pileup: int, *, vary: str | None = None) -> Call[Estimate]:
        """Return the price of an order.

        Parameters
        ----------
        channel, events, pileup
            What would be ordered.
        vary : str, optional
            As for :meth:`simulate`.

        Returns
        -------
        Estimate

        Raises
        ------
        InvalidInput
            With all problems.
        """
        query = given(channel=channel, events=events, pileup=pileup, vary=vary or None)
        return Call("GET", "/v1/estimate", single(Estimate), Credential.NONE, query=query)

    @endpoint
    def limits(self) -> Call[OrderLimits]:
        """What may be ordered: the channels, and the ranges of events, pileup and seed."""
        return Call("GET", "/v1/limits", single(OrderLimits), Credential.NONE)

    @endpoint
    def presets(self) -> Call[Page[Preset]]:
        """Orders that have a name."""
        return Call("GET", "/v1/presets", listed(Preset), Credential.NONE)
