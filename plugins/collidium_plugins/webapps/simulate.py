"""``/simulate``: the order form with presets and price, and the viewer's requests."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from quart import Response, request

from collidium.client import (
    ORDER_FIELDS,
    Account,
    Estimate,
    Order,
    OrderField,
    OrderLimits,
    OutputFile,
    Page,
    Preset,
    SimulationRequest,
)
from collidium.errors import CollidiumError, Conflict, Forbidden, InvalidInput
from collidium.presentation.requests import STATES
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.rendering import (
    SHOWN_ON_FORMS,
    part,
    refused,
    render,
    retry_after,
    see_other,
    with_query,
)
from collidium_plugins.webapps.sign_in import forms

_SENT_BEFORE: Final = (
    "this form was sent before with other values; it is a new order now: check it and send it again"
)
_KEY: Final = re.compile(r"[\w-]{32}", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,39}")
#: Maximum length of a field.
_FIELD_LENGTH: Final = 256

#: Requests on the page of the form, and per page of all requests.
LATEST: Final = 8
PAGE: Final = 25

_REPO: Final = re.compile(r"https?://[^/]+(?:/[^/]+)*?/datasets/([\w.-]+/[\w.-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Output:
    """The dataset of a request."""

    repo: str
    #: Its page on the hub; None if it is private on the local hub, whose pages have no sign-in.
    address: str | None
    #: Its first event in the event display; None if it is private.
    first_event: str | None


async def latest() -> Response:
    """``GET /simulate/latest``: the part of the form's page that is polled"""
    requests = await context.backend_as_user().requests(limit=LATEST)
    return await part(await render("simulate-latest.html", requests=requests, output_of=output_of))


async def show_all() -> Response:
    """``GET /simulate/requests?state=&cursor=``"""
    state = request.args.get("state") or None
    cursor = request.args.get("cursor") or None
    page = await context.backend_as_user().requests(state=state, limit=PAGE, cursor=cursor)
    return await render(
        "requests.html",
        requests=page,
        output_of=output_of,
        state=state,
        states=STATES,
        first=cursor and with_query("/simulate/requests", state=state),
        next=page.next_cursor and with_query("/simulate/requests", state=state, cursor=page.next_cursor),
    )


async def show_request(request_id: str) -> Response:
    """``GET /simulate/requests/<request_id>?ordered=``; ``ordered`` is set after an order"""
    return await _request_page(await context.backend_as_user().request(request_id))


async def live(request_id: str) -> Response:
    """``GET /simulate/requests/<request_id>/live``: the part of its page that is polled"""
    found = await context.backend_as_user().request(request_id)
    files = await _files(found)
    return await part(await render("request-live.html", request=found, output_of=output_of, files=files))


async def cancel(request_id: str) -> Response:
    """``POST /simulate/requests/<request_id>/cancel``"""
    backend = context.backend_as_user()
    try:
        await backend.cancel(request_id)
    except (Conflict, Forbidden) as refusal:
        return refused(await _request_page(await backend.request(request_id), refusal), refusal)
    return see_other(f"/simulate/requests/{request_id}")


async def _request_page(found: SimulationRequest, refusal: CollidiumError | None = None) -> Response:
    ordered = request.args.get("ordered")
    return await render(
        "request.html",
        request=found,
        output_of=output_of,
        files=await _files(found),
        ordered=ordered,
        refusal=refusal,
    )


async def _files(found: SimulationRequest) -> Sequence[OutputFile]:
    """Output files on the server, for a completed request that is not on a hub."""
    if found.state != "completed" or found.output_hub_repo is not None:
        return ()
    return (await context.backend_as_user().output(found.request_id)).items


def output_of(found: SimulationRequest) -> Output | None:
    """The dataset of a request; None if it has none yet, or was simulated by the mock."""
    named = _REPO.fullmatch(found.output_hub_repo or "")
    if named is None or found.output_is_mock:
        return None
    return Output(
        named[1],
        _page_of(named[0], named[1], private=found.private),
        None if found.private else with_query("/events", repo=named[1], config=found.config, event=0),
    )


def _page_of(address: str, repo: str, *, private: bool) -> str | None:
    if context.web().settings.hub_url:
        return address
    return None if private else f"{context.hub_url()}/datasets/{repo}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be ordered, and whether orders are frozen."""

    limits: OrderLimits
    presets: Sequence[Preset]
    frozen: bool

    def fields(self, form: Form) -> list[OrderField]:
        """The fields of an order that are shown: without variations if the pipeline has none."""
        varies = bool(self.limits.variations or form.values["vary"])
        return [field for field in ORDER_FIELDS if field.name != "vary" or varies]

    def form(self, typed: Mapping[str, str]) -> Form:
        """The form with the typed values, or those of a preset."""
        named = [preset for preset in self.presets if preset.name == typed.get("preset")]
        return Form.untouched(self.limits, named or self.presets).filled_in(typed)


@dataclass(frozen=True, slots=True)
class Customer:
    """The viewer's account and latest requests; None if not signed in or banned."""

    account: Account | None = None
    requests: Page[SimulationRequest] | None = None
    banned: bool = False


async def show() -> Response:
    """``GET /simulate``, with fields of the form or ``preset`` in the query"""
    offer, customer = await asyncio.gather(_offer(), _customer())
    return await _page(offer, customer, offer.form(request.args), asked="channel" in request.args)


async def place_order() -> Response:
    """``POST /simulate``: places the order of the form, once if it is sent twice"""
    context.signed_in()
    offer = await _offer()
    if offer.limits.publishes and not context.may("order"):
        return see_other(with_query("/web/sign-in", next=await forms.page_to_return_to(), **{"for": "order"}))
    typed = await request.form
    form = offer.form(typed).sent_with(typed.get("key", ""))
    try:
        order = form.order()
        placed = await context.backend_as_user().simulate(
            **order.parameters,
            private=form.private,
            idempotency_key=form.key,
        )
    except Conflict:
        return await _page(offer, await _customer(), form.with_new_key(), refusal=Conflict(_SENT_BEFORE))
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
        fields=offer.fields(form),
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
    """The price of the form, or why it cannot be ordered."""
    try:
        return await context.backend().estimate(**form.order().parameters), None
    except InvalidInput as problem:
        return None, problem


def _is_too_expensive(customer: Customer, price: Estimate | None) -> bool:
    return customer.account is not None and price is not None and price.credits > customer.account.credits


def _new_key() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of the form as they were typed."""

    #: Those of the order, by name.
    values: Mapping[str, str]
    private: bool = False
    #: Idempotency key of the order.
    key: str = field(default_factory=_new_key)

    def filled_in(self, typed: Mapping[str, str]) -> Form:
        """Fill in typed values."""
        values = {name: typed.get(name, value).strip()[:_FIELD_LENGTH] for name, value in self.values.items()}
        return replace(self, values=values, private="private" in typed)

    def sent_with(self, key: str) -> Form:
        """Use the key of the sent form, if it is valid."""
        return replace(self, key=key) if _KEY.fullmatch(key) else self

    @classmethod
    def untouched(cls, limits: OrderLimits, presets: Sequence[Preset]) -> Form:
        """The initial form, with the first preset."""
        initial: dict[str, object] = {field.name: field.default for field in ORDER_FIELDS}
        channel = limits.channels[0] if limits.channels else ""
        initial |= {"channel": channel, "events": limits.events.minimum, "pileup": limits.pileup.minimum}
        for preset in presets[:1]:
            initial |= {"channel": preset.channel, "events": preset.events, "pileup": preset.pileup}
        return cls({name: str(value) for name, value in initial.items()})

    @property
    def changed(self) -> list[str]:
        """The names of options that are not at their default."""
        return [
            field.name
            for field in ORDER_FIELDS
            if not field.is_required and self.values[field.name] != str(field.default)
        ]

    def order(self) -> Order:
        """Parse the numbers of the order, which the backend validates. Raises InvalidInput."""
        numbers = [field.name for field in ORDER_FIELDS if field.type is int]
        if wrong := [name for name in numbers if not _WHOLE.fullmatch(self.values[name])]:
            errors = [{"field": name, "detail": "a whole number"} for name in wrong]
            raise InvalidInput(f"{' and '.join(wrong)}: whole numbers are needed", errors=errors)
        parsed: dict[str, Any] = {field.name: field.type(self.values[field.name]) for field in ORDER_FIELDS}
        return Order(**parsed)

    def with_new_key(self) -> Form:
        """The same form as a new order."""
        return replace(self, key=_new_key())


ROUTES: Final[list[Route]] = [
    ("GET", "", show),
    ("POST", "", place_order),
    ("GET", "/latest", latest),
    ("GET", "/requests", show_all),
    ("GET", "/requests/<request_id>", show_request),
    ("GET", "/requests/<request_id>/live", live),
    ("POST", "/requests/<request_id>/cancel", cancel),
]
