"""``/simulate``: presets, the form with its price, and the latest requests; orders under ``/requests``."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quart import Response, request

from collidium.client import Account, Estimate, OrderLimits, Page, Preset, SimulationRequest
from collidium.errors import CollidiumError, Conflict, Forbidden, InvalidInput
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.rendering import (
    SHOWN_ON_FORMS,
    refused,
    render,
    retry_after,
    see_other,
    with_query,
)
from collidium_plugins.webapps.sign_in import forms
from collidium_plugins.webapps.simulate import requests as placed_orders
from collidium_plugins.webapps.simulate.requests import LATEST, output_of

_SENT_BEFORE: Final = (
    "this form was sent before with other values; it is a new order now: look it over and send it again"
)
_KEY: Final = re.compile(r"[\w-]{32}", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,39}")
#: Characters of a field that are kept: nothing longer could be ordered.
_LONGEST: Final = 256


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be ordered, and whether orders are taken now."""

    limits: OrderLimits
    presets: Sequence[Preset]
    frozen: bool

    def form(self, typed: Mapping[str, str]) -> Form:
        """The form with what was typed, or what the name of a preset stands for."""
        named = [preset for preset in self.presets if preset.name == typed.get("preset")]
        return Form.untouched(self.limits, named or self.presets).filled_in(typed)


@dataclass(frozen=True, slots=True)
class Customer:
    """The viewer's account and its latest requests; None without a sign-in, and for a banned account."""

    account: Account | None = None
    requests: Page[SimulationRequest] | None = None
    banned: bool = False


async def show() -> Response:
    """``GET /simulate``, with fields of the form, or ``preset``, in the query"""
    offer, customer = await asyncio.gather(_offer(), _customer())
    return await _page(offer, customer, offer.form(request.args), asked="channel" in request.args)


async def place_order() -> Response:
    """``POST /simulate``: order what the form holds; sent twice it is one order."""
    context.signed_in()
    offer = await _offer()
    if offer.limits.publishes and not context.may("order"):
        return see_other(with_query("/web/sign-in", next=await forms.page_to_return_to(), **{"for": "order"}))
    typed = await request.form
    form = offer.form(typed).sent_with(typed.get("key", ""))
    try:
        order = form.order()
        placed = await context.backend_as_user().simulate(
            order.channel,
            order.events,
            order.pileup,
            seed=order.seed,
            vary=order.vary,
            private=form.private,
            idempotency_key=form.key,
        )
    except Conflict:
        return await _page(offer, await _customer(), form.anew(), refusal=Conflict(_SENT_BEFORE))
    except SHOWN_ON_FORMS as refusal:
        return await _page(offer, await _customer(), form, refusal=refusal)
    ordered = "free" if placed.cached else "now"
    return see_other(with_query(f"/simulate/requests/{placed.request_id}", ordered=ordered))


async def _offer() -> Offer:
    backend = context.backend()
    limits, presets, ready = await asyncio.gather(backend.limits(), backend.presets(), backend.ready())
    return Offer(limits, presets.items, bool(ready.submissions_frozen))


async def _customer() -> Customer:
    if context.viewer() is None:
        return Customer()
    backend = context.backend_as_user()
    try:
        account, requests = await asyncio.gather(backend.me(), backend.requests(limit=LATEST))
    except Forbidden:
        return Customer(banned=True)
    return Customer(account, requests)


async def _page(
    offer: Offer,
    customer: Customer,
    form: Form,
    *,
    asked: bool = False,
    refusal: CollidiumError | None = None,
) -> Response:
    price, problem = await _price(form)
    problem = refusal or (problem if asked else None)
    response = await render(
        "simulate.html",
        offer=offer,
        customer=customer,
        form=form,
        price=price,
        problem=problem,
        faults={str(fault.get("field")): fault.get("detail") for fault in problem.errors} if problem else {},
        refusal=refusal,
        retry_after=retry_after(refusal),
        too_expensive=_is_too_expensive(customer, price),
        output_of=output_of,
    )
    return refused(response, refusal) if refusal else response


async def _price(form: Form) -> tuple[Estimate | None, CollidiumError | None]:
    """What the form costs as it stands, or why that cannot be ordered."""
    try:
        order = form.order()
        return await context.backend().estimate(
            order.channel, order.events, order.pileup, vary=order.vary
        ), None
    except InvalidInput as problem:
        return None, problem


def _is_too_expensive(customer: Customer, price: Estimate | None) -> bool:
    return customer.account is not None and price is not None and price.credits > customer.account.credits


@dataclass(frozen=True, slots=True)
class Order:
    """What the form orders, as numbers."""

    channel: str
    events: int
    pileup: int
    seed: int
    vary: str


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of the form, as they were typed."""

    channel: str
    events: str
    pileup: str
    seed: str
    vary: str
    private: bool
    #: However often it is sent, it orders once.
    key: str

    def filled_in(self, typed: Mapping[str, str]) -> Form:
        """The form with what was typed into it."""
        texts = {
            name: typed.get(name, getattr(self, name)).strip()[:_LONGEST]
            for name in ("channel", "events", "pileup", "seed", "vary")
        }
        return Form(**texts, private="private" in typed, key=self.key)

    def sent_with(self, key: str) -> Form:
        """The form as it was sent, under the key that it held."""
        return replace(self, key=key) if _KEY.fullmatch(key) else self

    @classmethod
    def untouched(cls, limits: OrderLimits, presets: Sequence[Preset]) -> Form:
        """The form as it is first shown: the first preset."""
        rest = str(limits.default_seed), "", False, _new_key()
        for preset in presets:
            return cls(preset.channel, str(preset.events), str(preset.pileup), *rest)
        channel = limits.channels[0] if limits.channels else ""
        return cls(channel, str(limits.events.minimum), str(limits.pileup.minimum), *rest)

    def order(self) -> Order:
        """The order, which the backend validates. Raises InvalidInput for what is no number."""
        wrong = [name for name in ("events", "pileup", "seed") if not _WHOLE.fullmatch(getattr(self, name))]
        if wrong:
            errors = [{"field": name, "detail": "a whole number"} for name in wrong]
            raise InvalidInput(f"{' and '.join(wrong)}: whole numbers are needed", errors=errors)
        return Order(self.channel, int(self.events), int(self.pileup), int(self.seed), self.vary)

    def anew(self) -> Form:
        """The same as another order."""
        return replace(self, key=_new_key())


def _new_key() -> str:
    return secrets.token_urlsafe(24)


ROUTES: Final[list[Route]] = [
    ("GET", "", show),
    ("POST", "", place_order),
    ("GET", "/latest", placed_orders.latest),
    ("GET", "/requests", placed_orders.show_all),
    ("GET", "/requests/<request_id>", placed_orders.show),
    ("GET", "/requests/<request_id>/live", placed_orders.live),
    ("POST", "/requests/<request_id>/cancel", placed_orders.cancel),
]
