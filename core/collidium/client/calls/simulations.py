"""Calls about the account, its notifications and its simulation requests."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TypedDict, Unpack
from urllib.parse import quote

from collidium.client.calls.call import Call, Credential, endpoint, idempotency_header, not_none, segment
from collidium.client.downloads import Download
from collidium.client.responses import listed, returns, single
from collidium.order import ORDER_FIELDS, OrderField, OrderOptions
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
from collidium.runtime.progress import Progress

_WEBHOOK = "/v1/me/webhook"
_NOTIFICATIONS = "/v1/me/notifications"


def _is_asked(field: OrderField, given: Mapping[str, object]) -> bool:
    return field.is_priced and given.get(field.name, "") != ""


class NotificationChanges(TypedDict, total=False):
    """Changes of an account's notification settings."""

    #: None removes it.
    email: str | None
    #: Kinds of events to switch on or off.
    kinds: Mapping[str, bool]


class AccountCalls:
    """Calls about the account and its notifications."""

    @endpoint
    def me(self) -> Call[Account]:
        """Return the account of the token; the first call creates it."""
        return Call("GET", "/v1/me", single(Account))

    @endpoint
    def transactions(self, *, limit: int | None = None, cursor: str | None = None) -> Call[Page[Transaction]]:
        """List the ledger entries of the account, newest first.

        Parameters
        ----------
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Transaction
        """
        return Call(
            "GET", "/v1/me/transactions", listed(Transaction), query=not_none(limit=limit, cursor=cursor)
        )

    @endpoint
    def set_webhook(self, url: str | None = None, *, rotate_secret: bool = False) -> Call[Webhook]:
        """Set the HTTPS address that is notified when a request ends.

        Parameters
        ----------
        url : str, optional
            By default the address does not change.
        rotate_secret : bool
            Create a new signing secret; the old one expires at once.

        Returns
        -------
        Webhook
            The only response with a new secret.

        Raises
        ------
        InvalidInput
            If the address cannot be used.
        """
        return Call("PUT", _WEBHOOK, single(Webhook), json=not_none(rotate_secret=rotate_secret, url=url))

    @endpoint
    def webhook(self) -> Call[Webhook]:
        """Return the account's webhook.

        Raises
        ------
        NotFound
            If the account has none.
        """
        return Call("GET", _WEBHOOK, single(Webhook))

    @endpoint
    def remove_webhook(self) -> Call[WebhookRemoved]:
        """Remove the account's webhook and its secret."""
        return Call("DELETE", _WEBHOOK, single(WebhookRemoved))

    @endpoint
    def webhook_deliveries(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[WebhookDelivery]]:
        """List deliveries to the account, newest first, with the reason if one failed.

        Parameters
        ----------
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of WebhookDelivery
        """
        return Call(
            "GET",
            f"{_WEBHOOK}/deliveries",
            listed(WebhookDelivery),
            query=not_none(limit=limit, cursor=cursor),
        )

    @endpoint
    def notifications(self) -> Call[Notifications]:
        """Return the account's notification settings and e-mail address."""
        return Call("GET", _NOTIFICATIONS, single(Notifications))

    @endpoint
    def set_notifications(self, **changes: Unpack[NotificationChanges]) -> Call[Notifications]:
        """Switch kinds of notifications on or off, or set the e-mail address.

        A new address receives a link that its owner must follow before anything else is sent there.

        Parameters
        ----------
        email : str or None, optional
            None removes the address.
        kinds : mapping of str to bool, optional
            For example ``{"deadline": False}``; ``notifications`` lists the kinds.

        Returns
        -------
        Notifications

        Raises
        ------
        InvalidInput
            If the address or a kind is invalid.
        Conflict
            If the server sends no e-mail.
        TooManyRequests
            If too many links were requested.
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
        preset: str | None = None,
        private: bool = False,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[OrderOptions],
    ) -> Call[SimulationRequest]:
        """Order simulated events.

        Parameters
        ----------
        channel, events, pileup
            Required unless ``preset`` is given.
        preset : str, optional
            Name of a preset, instead of the first three.
        private : bool
            Publish to a private repository.
        webhook_url : str, optional
            HTTPS address that is notified when the request ends.
        idempotency_key : str, optional
            Repeats with the same key place no second order. By default a key is generated, and the call is
            repeated if the connection breaks.
        **options
            The other fields of an order: ``seed`` (42 by default), ``vary`` (for example
            ``field=0.99,material=1.1``).

        Returns
        -------
        SimulationRequest
            If ``cached`` is set, an earlier request for the same events, which costs nothing.

        Raises
        ------
        InvalidInput
            With all problems in ``errors``.
        PaymentRequired
            If the balance is too low.
        TooManyRequests
            If a limit of the account or of the month is reached.
        Conflict
            If the key was used for another order.
        Unavailable
            If operators have frozen simulation requests.
        """
        order = not_none(channel=channel, events=events, pileup=pileup, preset=preset, **options)
        body = order | not_none(private=private or None, webhook_url=webhook_url)
        headers = idempotency_header(idempotency_key)
        return Call("POST", "/v1/simulate", single(SimulationRequest), json=body, headers=headers)

    @endpoint
    def request(self, request_id: str) -> Call[SimulationRequest]:
        """Return a simulation request with its timeline.

        Raises
        ------
        NotFound
            If the account has no such request.
        """
        return Call("GET", f"/v1/requests/{segment(request_id)}", single(SimulationRequest))

    @endpoint
    def requests(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[SimulationRequest]]:
        """List the account's simulation requests, newest first.

        Parameters
        ----------
        state : str, optional
            Only requests in this state.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of SimulationRequest
        """
        query = not_none(state=state, limit=limit, cursor=cursor)
        return Call("GET", "/v1/requests", listed(SimulationRequest), query=query)

    @endpoint
    def output(self, request_id: str) -> Call[Page[OutputFile]]:
        """List the files of a completed request that the server stores.

        Raises
        ------
        NotFound
            If the account has no such request.
        """
        return Call("GET", f"/v1/requests/{segment(request_id)}/output", listed(OutputFile))

    @endpoint
    def output_file(
        self,
        request_id: str,
        file: OutputFile,
        directory: str | PathLike[str],
        progress: Progress | None = None,
    ) -> Call[Path]:
        """Download a file of a completed request, unless it is there; what was interrupted is resumed.

        Parameters
        ----------
        request_id : str
        file : OutputFile
            One of those that :meth:`output` lists.
        directory : path-like
            Directory of the request's output, in which the file has its path.
        progress : callable, optional
            Called with the bytes received and the total.

        Returns
        -------
        Path
            The file, whose content has the hash that the server named.

        Raises
        ------
        NotFound
            If the account has no such request, or the file is no longer stored.
        Conflict
            If another process downloads the file to this directory.
        UnusableDataset
            If another content was received twice.
        Unreachable, Unavailable
            If the connection breaks and nothing more arrives for five minutes.
        """
        path = f"/v1/requests/{segment(request_id)}/output/{quote(file.path)}"
        wanted = Download.below(Path(directory), file.path, file.sha256, file.size_bytes, progress)
        return Call("GET", path, returns(wanted.path), download=wanted)

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
        NotFound
            If the account has no such request.
        Forbidden
            If another account ordered it.
        Conflict
            If it has completed or failed, or its output is being published.
        """
        return Call("POST", f"/v1/requests/{segment(request_id)}/cancel", single(SimulationRequest))

    @endpoint
    def estimate(
        self, channel: str, events: int, pileup: int, **options: Unpack[OrderOptions]
    ) -> Call[Estimate]:
        """Return the price of an order.

        Parameters
        ----------
        channel, events, pileup
            The order.
        **options
            As for :meth:`simulate`; those that the price does not depend on are not sent.

        Returns
        -------
        Estimate

        Raises
        ------
        InvalidInput
            With all problems in ``errors``.
        """
        given = not_none(channel=channel, events=events, pileup=pileup, **options)
        query = {field.name: given[field.name] for field in ORDER_FIELDS if _is_asked(field, given)}
        return Call("GET", "/v1/estimate", single(Estimate), Credential.NONE, query=query)

    @endpoint
    def limits(self) -> Call[OrderLimits]:
        """Return the channels that can be ordered, and the ranges of events, pileup and seed."""
        return Call("GET", "/v1/limits", single(OrderLimits), Credential.NONE)

    @endpoint
    def presets(self) -> Call[Page[Preset]]:
        """List the presets that can be ordered."""
        return Call("GET", "/v1/presets", listed(Preset), Credential.NONE)
