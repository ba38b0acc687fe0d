"""``/v1/simulate``, ``/v1/requests``, ``/v1/estimate`` and ``/v1/presets``: orders of simulated events."""

from __future__ import annotations

from pydantic import BaseModel, Field
from quart import Blueprint, Response, request
from quart_schema import (
    document_headers,
    document_request,
    document_response,
    operation_id,
    validate_querystring,
)

from collidium import simulations
from collidium.api.answers import (
    PageQuery,
    answer,
    answer_list,
    answer_stream,
    answer_with_file,
    id_cursor,
    page_of,
)
from collidium.api.authentication import Caller, signed_in
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.openapi import PARQUET, parquet_answer, stream_answer
from collidium.api.orders import ChannelBody, EstimateQuery, OrderBody, SimulateBody, order_body
from collidium.api.schemas import IdempotencyHeaders
from collidium.errors import Conflict, InvalidInput, NotFound, PaymentRequired, Unavailable
from collidium.records import Estimate, OrderLimits, OutputFile, Preset, SimulationRequest
from collidium.runtime import metrics
from collidium.simulations import PRESETS, DeliveryOptions, Order, State
from collidium.simulations.output import storage_key

blueprint = Blueprint("simulations", __name__, url_prefix="/v1")


class RequestsQuery(PageQuery):
    """Filters of a list of requests."""

    state: State | None = Field(None, description="Only requests in this state.")


class AllRequestsQuery(RequestsQuery):
    """Filters of a list of requests of all accounts."""

    user: str | None = Field(None, max_length=96, description="Only requests of this account.")
    channel: str | None = Field(None, max_length=64, description="Only requests of this channel.")


@blueprint.post("/simulate")
@signed_in
@document_request(SimulateBody)
@document_headers(IdempotencyHeaders)
@document_response(SimulationRequest)
@document_response(SimulationRequest, 202)
@raises(PaymentRequired, Unavailable)
async def simulate(caller: Caller) -> Response:
    """Order simulated events and pay for them.

    If a request with the same config completed recently, it is returned at no cost (200, `cached`); otherwise
    the request is queued (202), and its Location returns its progress.
    """
    return await ordered(caller, ChannelBody)


async def ordered(caller: Caller, channel_body: type[OrderBody]) -> Response:
    """Place the order of the request: a preset, or a ``channel_body``."""
    body = await order_body(channel_body)
    delivery = DeliveryOptions(
        token=caller.hub_token,
        token_is_read_only=caller.identity.read_only,
        private=body.private,
        webhook_url=body.webhook_url,
        idempotency_key=request.headers.get("Idempotency-Key"),
    )
    placed = await simulations.place(platform(), caller.account, body.order(), delivery)
    metrics.SIMULATIONS.labels("cached" if placed.cached else "queued").inc()
    response = answer(placed, 200 if placed.cached else 202)
    response.headers["Location"] = f"/v1/requests/{placed.request_id}"
    return response


@blueprint.get("/estimate")
@validate_querystring(EstimateQuery)
@document_response(Estimate)
async def estimate(query_args: BaseModel) -> Response:
    """The price of an order."""
    order = Order(**query_args.model_dump())
    parts = platform()
    is_mock = parts.runner.is_mock
    return answer(simulations.estimate(order, parts.settings, parts.pipeline, is_mock=is_mock))


@blueprint.get("/limits")
@document_response(OrderLimits)
async def limits() -> Response:
    """The channels that can be ordered, and the limits of events, pileup and seed."""
    parts = platform()
    return answer(simulations.limits(parts.settings, parts.pipeline, is_mock=parts.runner.is_mock))


@blueprint.get("/presets")
@document_response(list[Preset])
async def presets() -> Response:
    """The presets that can be ordered, with their prices."""
    return answer_list([preset for name, order in PRESETS.items() if (preset := _preset(name, order))])


@blueprint.get("/requests")
@signed_in
@validate_querystring(RequestsQuery)
@document_response(list[SimulationRequest])
async def requests(caller: Caller, query_args: RequestsQuery) -> Response:
    """Your simulation requests, newest first."""
    return await listed(query_args, caller.account.id)


@blueprint.get("/requests/<request_id>")
@operation_id("request")
@signed_in
@document_response(SimulationRequest)
async def find(caller: Caller, request_id: str) -> Response:
    """A simulation request that you ordered, or received as a cached answer."""
    return answer(await simulations.find_with_progress(platform(), request_id, caller.account.id))


@blueprint.get("/requests/<request_id>/progress")
@operation_id("request_progress")
@signed_in
@stream_answer
async def watch(caller: Caller, request_id: str) -> Response:
    """The request as server-sent events: its JSON at once, and within two seconds of each change.

    The stream ends with the request, after some minutes, and when the server stops: reconnect then. The
    number of streams per account is limited (429).
    """
    return answer_stream(await simulations.watch(platform(), request_id, caller.account.id))


@blueprint.get("/requests/<request_id>/output")
@signed_in
@document_response(list[OutputFile])
async def output(caller: Caller, request_id: str) -> Response:
    """The files of your completed request that the platform stores, whether or not they are on a hub."""
    return answer_list(await simulations.output_of(request_id, caller.account.id))


@blueprint.get("/requests/<request_id>/output/<path:path>")
@signed_in
@parquet_answer
async def output_file(caller: Caller, request_id: str, path: str) -> Response:
    """An output file of your completed request."""
    return await answer_with_output(request_id, path, caller.account.id)


@blueprint.post("/requests/<request_id>/cancel")
@signed_in
@document_response(SimulationRequest)
@document_response(SimulationRequest, 202)
@raises(Conflict)
async def cancel(caller: Caller, request_id: str) -> Response:
    """Cancel a simulation request: 202 while its job is being stopped, 200 when it is cancelled.

    What the job did not use is refunded.
    """
    return cancelling(await simulations.cancel(platform(), request_id, caller.account))


# -- also for operators --------------------------------------------------------------------------------


async def answer_with_output(request_id: str, path: str, account_id: int | None) -> Response:
    """Return an output file that the account (None: an operator) may read. Raises NotFound."""
    files = {file.path: file.sha256 for file in await simulations.output_of(request_id, account_id)}
    if path not in files:
        raise NotFound(f"the request's output has no file {path[:100]!r}")
    settings = platform().settings
    key = storage_key(request_id, files[path])
    return await answer_with_file(platform().storage, key, files[path], settings.uploads, PARQUET)


async def listed(query: RequestsQuery, account_id: int | None, channel: str | None = None) -> Response:
    """A page of one account's requests, or of all accounts'."""
    found = await simulations.list_requests(
        limit=query.limit + 1,
        before=id_cursor(query),
        account_id=account_id,
        states=[query.state] if query.state else (),
        channel=channel,
    )
    page = found[: query.limit]
    cursor = page[-1][0] if len(found) > query.limit else None
    return page_of([request for _, request in page], query, cursor).response()


def cancelling(request: SimulationRequest) -> Response:
    """Return the response to a cancellation."""
    status = 200 if request.state == State.CANCELLED else 202
    return answer(request, status)


def _preset(name: str, order: Order) -> Preset | None:
    """Return a preset with its price, or None if the platform does not accept it."""
    try:
        price = simulations.estimate(order, platform().settings, platform().pipeline)
    except InvalidInput:
        return None
    return Preset.of(price, name=name)
