"""Place an order: answer it with an earlier request for the same events, or charge for it and queue it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs
from tortoise.timezone import now

from collidium import accounts, operations, outbox, records
from collidium.accounts import idempotency
from collidium.database import (
    Statement,
    insertion,
    loaded,
    on_commit,
    together,
    transactional_at_once,
    unsaved,
)
from collidium.errors import Forbidden, TooManyRequests, Unavailable
from collidium.order import Order
from collidium.runtime.failpoints import reached
from collidium.simulations import totals, transitions
from collidium.simulations.models import (
    HistoryLine,
    Reader,
    SimulationRequest,
    State,
    Step,
    order_columns,
)
from collidium.simulations.orders import estimate
from collidium.simulations.transitions import view

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform
    from collidium.settings import Settings


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How the output of an order is delivered.

    ``token`` is the requester's hub token, to publish with; if None, the output stays in the storage.
    """

    token: str | None = field(repr=False)
    token_is_read_only: bool = False
    private: bool = False
    webhook_url: str | None = None
    idempotency_key: str | None = None


async def place(
    platform: Platform, account: AccountView, order: Order, delivery: DeliveryOptions
) -> records.SimulationRequest:
    """Answer an order with a completed request of the same config, or charge for it and queue it.

    Raises InvalidInput, Forbidden for a banned account and for a token that cannot publish, TooManyRequests,
    Unavailable while new requests are frozen, PaymentRequired, and Conflict for an idempotency key of another
    order. Then nothing is written.
    """
    if delivery.webhook_url is not None:
        delivery = replace(delivery, webhook_url=outbox.canonical_url(delivery.webhook_url))
    if delivery.webhook_url is not None and not await idempotency.is_known(
        _owner(account), delivery.idempotency_key
    ):
        # Not for a repeated key: its order has been accepted, even if the host is unreachable now.
        await outbox.require_reachable(delivery.webhook_url, platform.settings, account_id=account.id)
    placed = await _place(platform, account, order, delivery)
    reached("place.after_commit")
    return placed


@transactional_at_once
async def _place(
    platform: Platform, account: AccountView, order: Order, delivery: DeliveryOptions
) -> records.SimulationRequest:
    """Lock, read, write: one round trip each."""
    settings, owner, key = platform.settings, _owner(account), delivery.idempotency_key
    question = _question(order, delivery) if key else None
    config_hash = order.config_hash(platform.pipeline_version)
    # The shared freeze first, then the account: the same order everywhere, to avoid deadlocks.
    locked = await together(
        accounts.locked(account.id, operations.SHARE_FREEZE), *idempotency.claim(owner, key, question)
    )
    if locked["banned"]:
        raise accounts.banned_error(account.hub_username)
    if known := idempotency.answer_in(locked, question):
        row = await SimulationRequest.get(request_id=known["request"])
        return await _answer(row, cached=known["cached"])
    kept = await together(operations.READ_FREEZE, _reading(platform, account, config_hash))
    if kept["same"] is not None:
        return await _from_cache(account, delivery, await SimulationRequest.get(id=kept["same"]))
    price = estimate(order, settings, platform.pipeline)
    await _require_acceptable(platform, account, delivery, kept)
    row = _new_row(platform, account, order, price, config_hash, delivery)
    reached("place.before_charge")
    await _charge_and_queue(account, Decimal(locked["credits"]), row, delivery, settings)
    return view(row, [])


async def _require_acceptable(
    platform: Platform,
    account: AccountView,
    delivery: DeliveryOptions,
    kept: Mapping[str, Any],
) -> None:
    """Raise the error of :func:`place` for an order that cannot be accepted now."""
    if delivery.token_is_read_only and not platform.runner.is_mock:
        raise Forbidden(
            "the events are published with your token, which is read-only: use one that may write"
        )
    _require_capacity(kept, platform.settings)
    if delivery.webhook_url is not None:
        await outbox.require_secret(account.id)
    if kept["submissions_frozen"]:
        raise Unavailable("new simulation requests are not accepted now; try again later", retry_after=600)


def _require_capacity(kept: Mapping[str, Any], settings: Settings) -> None:
    """Raise TooManyRequests if the account has too many recent or too many unfinished requests."""
    if kept["oldest"] is not None:
        # An order is accepted again once the oldest has left the window.
        oldest = loaded(SimulationRequest, "created_at", kept["oldest"])
        wait = oldest + timedelta(seconds=settings.burst_seconds) - now()
        raise TooManyRequests(
            f"an account orders at most {settings.burst_requests} times in {settings.burst_seconds:g} s",
            retry_after=max(1, ceil(wait.total_seconds())),
        )
    if kept["unfinished"] >= settings.unfinished_requests:
        raise TooManyRequests(
            f"an account has at most {settings.unfinished_requests} unfinished requests; wait for one to end",
            retry_after=60,
        )


async def _charge_and_queue(
    account: AccountView,
    balance: Decimal,
    row: SimulationRequest,
    delivery: DeliveryOptions,
    settings: Settings,
) -> None:
    charge = accounts.charge(
        account.id, balance, -row.credits_charged, reason="simulation_charge", reference=row.request_id
    )
    written = await together(
        *totals.add_request(row), *charge, insertion(row), *_remembered(account, delivery, row, cached=False)
    )
    totals.check_month(written, settings.monthly_node_hours)
    on_commit(transitions.CHANGED.notify)
    reached("place.before_commit")


def _new_row(
    platform: Platform,
    account: AccountView,
    order: Order,
    price: records.Estimate,
    config_hash: str,
    delivery: DeliveryOptions,
) -> SimulationRequest:
    settings, runner, moment = platform.settings, platform.runner, now()
    return unsaved(
        SimulationRequest,
        request_id=uuid.uuid4().hex,
        account_id=account.id,
        hub_username=account.hub_username,
        **order_columns(order),
        pipeline_version=platform.pipeline_version,
        config_hash=config_hash,
        private=delivery.private,
        webhook_url=delivery.webhook_url,
        state=State.QUEUED,
        created_at=moment,
        created_day=totals.day_of(moment),
        credits_charged=price.node_hours,
        estimated_node_hours=price.node_hours,
        node_hours=price.node_hours,
        runner=runner.name,
        is_mock=runner.is_mock,
        node_seconds=price.node_seconds,
        # A mock publishes nothing.
        encrypted_token=platform.secrets.encrypt(delivery.token)
        if delivery.token and not runner.is_mock
        else None,
        step=Step.SUBMIT,
        due_at=moment,
        deadline_at=moment + timedelta(seconds=settings.submit_deadline_seconds),
    )


# -- answers without charge --------------------------------------------------------------------------


def _reading(platform: Platform, account: AccountView, config_hash: str) -> Statement:
    """Read what limits and answers without charge depend on, in one statement.

    ``oldest`` is when the oldest of the account's last ``burst_requests`` orders was placed, if all are
    within the window; ``unfinished`` is the number of its unfinished requests; ``same`` is the latest
    completed request for the same events that the account may read.
    """
    settings = platform.settings
    return Statement(
        _READ,
        (
            *(account.id, now() - timedelta(seconds=settings.burst_seconds), settings.burst_requests - 1),
            account.id,
            config_hash,
            now() - timedelta(days=settings.dedup_days),
            # Output of a mock does not answer a real order, nor vice versa.
            platform.runner.is_mock,
            account.id,
        ),
    )


# Output of a banned account, and output that is on no hub, is for its owner only.
_READ: Final = f"""SELECT
    (SELECT created_at FROM simulation_requests WHERE account_id = ? AND created_at > ?
     ORDER BY created_at DESC LIMIT 1 OFFSET ?) AS oldest,
    (SELECT COUNT(*) FROM simulation_requests
     WHERE account_id = ? AND state IN ('queued', 'running')) AS unfinished,
    (SELECT id FROM (SELECT id, account_id AS owner, finished_at,
            private OR (output IS NOT NULL AND output_hub_repo IS NULL) AS own FROM simulation_requests
        WHERE config_hash = ? AND state = 'completed' AND finished_at > ? AND is_mock = ?) AS made
     WHERE owner = ? OR NOT (own OR {accounts.IS_BANNED}) ORDER BY finished_at DESC LIMIT 1) AS same
"""  # noqa: S608 -- constants


async def _from_cache(
    account: AccountView, delivery: DeliveryOptions, found: SimulationRequest
) -> records.SimulationRequest:
    if found.account_id != account.id:
        await Reader.bulk_create([Reader(request_id=found.id, account_id=account.id)], ignore_conflicts=True)
    await together(*_remembered(account, delivery, found, cached=True))
    return await _answer(found, cached=True)


async def _answer(row: SimulationRequest, *, cached: bool) -> records.SimulationRequest:
    history = await transitions.history_of(row)
    return cached_view(row, history) if cached else view(row, history)


def cached_view(row: SimulationRequest, history: Sequence[HistoryLine]) -> records.SimulationRequest:
    """Return the record of a request for an account whose order it answered without charge."""
    request = view(row, history)
    return structs.replace(request, credits_charged=Decimal(0), credits_refunded=Decimal(0), cached=True)


def _remembered(
    account: AccountView, delivery: DeliveryOptions, row: SimulationRequest, *, cached: bool
) -> list[Statement]:
    answer = {"request": row.request_id, "cached": cached}
    return idempotency.keep(_owner(account), delivery.idempotency_key, answer)


def _owner(account: AccountView) -> str:
    return f"account:{account.id}"


def _question(order: Order, delivery: DeliveryOptions) -> dict[str, object]:
    return order.identity | {"private": delivery.private, "webhook_url": delivery.webhook_url}
