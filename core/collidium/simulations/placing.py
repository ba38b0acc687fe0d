"""Ordering events: an answer from what was made before, or a charge and a request in the queue."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Final

from msgspec import structs
from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import accounts, operations, outbox, records
from collidium.accounts import idempotency
from collidium.database import on_commit, transactional
from collidium.errors import Forbidden, TooManyRequests, Unavailable
from collidium.order import Order
from collidium.runtime.failpoints import reached
from collidium.simulations import totals, transitions
from collidium.simulations.models import Reader, SimulationRequest, State, Step
from collidium.simulations.orders import check, estimate
from collidium.simulations.transitions import view

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform
    from collidium.settings import Settings

#: How many completed requests are looked at for one whose owner is not banned.
CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How an order is to be delivered; ``token`` is the requester's hub token, to publish with."""

    token: str = field(repr=False)
    token_is_read_only: bool = False
    private: bool = False
    webhook_url: str | None = None
    idempotency_key: str | None = None


async def place(
    platform: Platform, account: AccountView, order: Order, delivery: DeliveryOptions
) -> records.SimulationRequest:
    """Answer an order with a completed request of the same config, or charge for it and queue it.

    Raises, with nothing written: InvalidInput, Forbidden for a banned account and for a token that cannot
    publish, TooManyRequests, Unavailable while new requests are frozen, PaymentRequired, and Conflict for an
    idempotency key that stands for another order.
    """
    if delivery.webhook_url is not None:
        delivery = replace(delivery, webhook_url=outbox.canonical_url(delivery.webhook_url))
    if delivery.webhook_url is not None and not await idempotency.is_known(
        _owner(account), delivery.idempotency_key
    ):
        # Not for a repeated key: its order was accepted, whatever has become of the host since.
        await outbox.require_reachable(delivery.webhook_url, platform.settings, account_id=account.id)
    placed = await _place(platform, account, order, delivery)
    reached("place.after_commit")
    return placed


@transactional
async def _place(
    platform: Platform, account: AccountView, order: Order, delivery: DeliveryOptions
) -> records.SimulationRequest:
    # First what many read, then the account: everywhere in this order, to avoid deadlocks.
    frozen = await operations.is_frozen_until_done()
    await accounts.require_not_banned(account.id)
    if answered := await _answered_before(account, order, delivery):
        return answered
    if found := await _completed(platform, account, order):
        return await _from_cache(account, delivery, found)
    settings = platform.settings
    check(order, settings)
    if delivery.token_is_read_only and not platform.runner.is_mock:
        raise Forbidden(
            "the events are published with your token, which may only read: use one that may write"
        )
    await require_room(account.id, settings)
    if delivery.webhook_url is not None:
        await outbox.require_secret(account.id)
    if frozen:
        raise Unavailable("new simulation requests are not accepted now; try again later", retry_after=600)
    row = _new_row(platform, account, order, delivery)
    reached("place.before_charge")
    await accounts.post(
        account.id, -row.credits_charged, reason="simulation_charge", reference=row.request_id
    )
    reached("place.after_charge")
    await totals.add_request(row, settings.monthly_node_hours)
    await row.save(force_create=True)
    first_line = await transitions.begin_history(row)
    await _remember(account, delivery, row, cached=False)
    on_commit(transitions.CHANGED.notify)
    reached("place.before_commit")
    return view(row, [first_line])


def _new_row(
    platform: Platform, account: AccountView, order: Order, delivery: DeliveryOptions
) -> SimulationRequest:
    settings, moment = platform.settings, now()
    price = estimate(order, settings)
    runner = platform.runner
    return SimulationRequest(
        request_id=uuid.uuid4().hex,
        account_id=account.id,
        hub_username=account.hub_username,
        **asdict(order),
        pipeline_version=settings.pipeline_version,
        config_hash=order.config_hash(settings.pipeline_version),
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
        # A mock publishes nothing, so it needs no token.
        encrypted_token=None if runner.is_mock else platform.secrets.encrypt(delivery.token),
        step=Step.SUBMIT,
        due_at=moment,
        deadline_at=moment + timedelta(seconds=settings.submit_deadline_seconds),
    )


# -- answers without charge --------------------------------------------------------------------------


async def _answered_before(
    account: AccountView, order: Order, delivery: DeliveryOptions
) -> records.SimulationRequest | None:
    known = await idempotency.recall(_owner(account), delivery.idempotency_key, _question(order, delivery))
    if known is None:
        return None
    row = await SimulationRequest.get(id=known["request"])
    return await _answer(row, cached=known["cached"])


async def _completed(platform: Platform, account: AccountView, order: Order) -> SimulationRequest | None:
    """A completed request that gave the same events lately, unless it is another account's private one."""
    settings = platform.settings
    rows = (
        await SimulationRequest.filter(
            Q(private=False) | Q(account_id=account.id),
            config_hash=order.config_hash(settings.pipeline_version),
            state=State.COMPLETED,
            finished_at__gt=now() - timedelta(days=settings.dedup_days),
            # What a mock made is no answer to a real order, nor the other way round.
            is_mock=platform.runner.is_mock,
        )
        .order_by("-finished_at")
        .limit(CANDIDATES)
    )
    # Who was banned still owns what was published for them.
    banned = await accounts.banned_among({row.account_id for row in rows} - {account.id})
    return next((row for row in rows if row.account_id not in banned), None)


async def _from_cache(
    account: AccountView, delivery: DeliveryOptions, found: SimulationRequest
) -> records.SimulationRequest:
    if found.account_id != account.id:
        await Reader.bulk_create([Reader(request_id=found.id, account_id=account.id)], ignore_conflicts=True)
    await _remember(account, delivery, found, cached=True)
    return await _answer(found, cached=True)


async def _answer(row: SimulationRequest, *, cached: bool) -> records.SimulationRequest:
    request = view(row, await transitions.history_of(row))
    return structs.replace(request, credits_charged=Decimal(0), cached=True) if cached else request


async def _remember(
    account: AccountView, delivery: DeliveryOptions, row: SimulationRequest, *, cached: bool
) -> None:
    answer = {"request": row.id, "cached": cached}
    await idempotency.remember(_owner(account), delivery.idempotency_key, answer)


def _owner(account: AccountView) -> str:
    return f"account:{account.id}"


def _question(order: Order, delivery: DeliveryOptions) -> dict[str, object]:
    return asdict(order) | {"private": delivery.private, "webhook_url": delivery.webhook_url}


async def require_room(account_id: int, settings: Settings) -> None:
    """Raise TooManyRequests when the account has ordered too much of late, or has too much under way.

    Call it in the transaction that orders, with the account's row locked.
    """
    window = timedelta(seconds=settings.burst_seconds)
    # The oldest of as many as fit into the window: once it leaves the window there is room again.
    oldest = (
        await SimulationRequest.filter(account_id=account_id, created_at__gt=now() - window)
        .order_by("-created_at")
        .offset(settings.burst_requests - 1)
        .only("id", "created_at")
        .first()
    )
    if oldest is not None:
        wait = oldest.created_at + window - now()
        raise TooManyRequests(
            f"an account orders at most {settings.burst_requests} times in {settings.burst_seconds:g} s",
            retry_after=max(1, ceil(wait.total_seconds())),
        )
    unfinished = SimulationRequest.filter(account_id=account_id, state__in=[State.QUEUED, State.RUNNING])
    if await unfinished.count() >= settings.unfinished_requests:
        raise TooManyRequests(
            f"an account has at most {settings.unfinished_requests} unfinished requests; wait for one to end",
            retry_after=60,
        )
