"""``/v1/simulate``, ``/v1/requests``, ``/v1/estimate`` and ``/v1/presets``: orders of simulated events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
)
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
    Page,
    answer,
    answer_list,
    answer_stream,
    answer_with_file,
    id_cursor,
    page_of,
)
from collidium.api.authentication import Caller, signed_in
from collidium.api.context import platform
from collidium.api.openapi import PARQUET, parquet_answer, stream_answer
from collidium.api.problems import schema_refusal
from collidium.api.schemas import IdempotencyHeaders, example
from collidium.errors import InvalidInput, NotFound
from collidium.order import DEFAULT_SEED, LARGEST_SEED, order_of
from collidium.records import Estimate, OrderLimits, OutputFile, Preset, SimulationRequest
from collidium.runtime import metrics
from collidium.simulations import PRESETS, DeliveryOptions, Order, State
from collidium.simulations.output import storage_key

blueprint = Blueprint("simulations", __name__, url_prefix="/v1")


class OrderBody(BaseModel):
    """Fields that all orders have."""

    #: The domain checks limits, and reports all problems at once.
    model_config = ConfigDict(extra="forbid", strict=True)

    seed: int = Field(
        DEFAULT_SEED,
        description="The same config and seed give the same events.",
        json_schema_extra={"minimum": 0, "maximum": LARGEST_SEED},
    )
    vary: str = Field(
        "",
        description="Systematic variation, such as `field=0.99`; see `variations` of GET /v1/limits.",
    )
    private: bool = Field(False, description="Whether to publish the output in a private repository.")
    webhook_url: str | None = Field(None, description="HTTPS address that is notified when the request ends.")


class ChannelBody(OrderBody):
    """An order by channel, events and pileup."""

    model_config = example({"channel": "ttbar", "events": 1000, "pileup": 40})

    channel: str = Field(description="Physics process.")
    events: int = Field(description="Number of hard-scatter events.", json_schema_extra={"minimum": 1})
    pileup: int = Field(
        description="Average number of soft interactions overlaid per event.",
        json_schema_extra={"minimum": 0},
    )


class PresetBody(OrderBody):
    """An order by the name of a preset."""

    model_config = example({"preset": "ttbar-quick"})

    preset: str = Field(description="One of GET /v1/presets.")


class SimulateBody(RootModel[ChannelBody | PresetBody]):
    """An order of simulated events."""


class RequestsQuery(Page):
    """Filters of a list of requests."""

    state: State | None = Field(None, description="Only requests in this state.")


class AllRequestsQuery(RequestsQuery):
    """Filters of a list of requests of all accounts."""

    user: str | None = Field(None, max_length=96, description="Only requests of this account.")
    channel: str | None = Field(None, max_length=64, description="Only requests of this channel.")


class EstimateQuery(BaseModel):
    """The order to estimate."""

    channel: str
    events: int
    pileup: int
    vary: str = ""


@blueprint.post("/simulate")
@signed_in
@document_request(SimulateBody)
@document_headers(IdempotencyHeaders)
@document_response(SimulationRequest)
@document_response(SimulationRequest, 202)
async def simulate(caller: Caller) -> Response:
    """Order simulated events and pay for them.

    If a request with the same config completed recently, it is returned at no cost (200, `cached`); otherwise
    the request is queued (202), and its Location returns its progress.
    """
    return await ordered(caller, ChannelBody)


async def ordered(caller: Caller, channel_body: type[ChannelBody]) -> Response:
    """Place the order of the request: a preset, or a ``channel_body``."""
    body = await _body(channel_body)
    delivery = DeliveryOptions(
        token=caller.hub_token,
        token_is_read_only=caller.identity.read_only,
        private=body.private,
        webhook_url=body.webhook_url,
        idempotency_key=request.headers.get("Idempotency-Key"),
    )
    placed = await simulations.place(platform(), caller.account, _order(body), delivery)
    metrics.SIMULATIONS.labels("cached" if placed.cached else "queued").inc()
    response = answer(placed, 200 if placed.cached else 202)
    response.headers["Location"] = f"/v1/requests/{placed.request_id}"
    return response


@blueprint.get("/estimate")
@validate_querystring(EstimateQuery)
@document_response(Estimate)
async def estimate(query_args: EstimateQuery) -> Response:
    """The price of an order."""
    order = Order(query_args.channel, query_args.events, query_args.pileup, vary=query_args.vary)
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


# -- parsing of orders ---------------------------------------------------------------------------------


async def _body(channel_body: type[ChannelBody]) -> ChannelBody | PresetBody:
    """Parse the body as a preset or ``channel_body``; raises with all problems."""
    data = await request.get_json()
    if not isinstance(data, dict):
        raise InvalidInput("the body must be a JSON object with channel, events and pileup, or a preset")
    model = PresetBody if "preset" in data else channel_body
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise schema_refusal(error, _other_problems(model, data, error)) from error


#: Valid values for fields without any, to check the others.
_VALID: Final = {"channel": "", "events": 1, "pileup": 0, "preset": next(iter(PRESETS))}


def _other_problems(
    model: type[ChannelBody | PresetBody], data: Mapping[str, Any], error: ValidationError
) -> list[Mapping[str, Any]]:
    """Problems of an order in the fields that have the documented shape, while others do not."""
    wrong = {str(item["loc"][0]) for item in error.errors() if item["loc"]}
    right = {name: data[name] for name in model.model_fields if name in data and name not in wrong}
    filled = {name: value for name, value in _VALID.items() if name in model.model_fields}
    parts = platform()
    try:
        simulations.estimate(_order(model.model_validate(filled | right)), parts.settings, parts.pipeline)
    except InvalidInput as other:
        return [problem for problem in other.errors if problem.get("field") not in wrong]
    return []


def _order(body: ChannelBody | PresetBody) -> Order:
    if isinstance(body, ChannelBody):
        return Order(body.channel, body.events, body.pileup, body.seed, body.vary)
    return order_of(body.preset, seed=body.seed, vary=body.vary)


def _preset(name: str, order: Order) -> Preset | None:
    """Return a preset with its price, or None if the platform does not accept it."""
    try:
        price = simulations.estimate(order, platform().settings, platform().pipeline)
    except InvalidInput:
        return None
    return Preset.of(price, name=name)
