"""The client's calls, and the handlers that answer them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

from pydantic import ConfigDict
from quart import Blueprint, Response, current_app, request
from quart_schema import validate_querystring, validate_request
from werkzeug.datastructures import MultiDict

from collidium import operations
from collidium.api.answers import JSON, answer
from collidium.api.authentication import only_operators, request_id, require_operator
from collidium.api.benchmarks import received_submission
from collidium.api.context import platform
from collidium.api.idempotency import idempotent
from collidium.api.operator_schemas import BanBody, FreezeQuery, GrantBody
from collidium.api.order_schemas import ChannelBody
from collidium.api.schemas import Text
from collidium.api.simulations import ordered
from collidium.benchmarks.submissions import standing
from collidium.records import Banned, Frozen, Granted
from collidium_plugins.colliderml_compat import names
from collidium_plugins.colliderml_compat.names import name_there

PREFIX: Final = "/compat/colliderml"


class TheirGrant(GrantBody):
    """A grant; there, a reason need not be given."""

    model_config = ConfigDict(alias_generator=name_there)

    reason: Text = "admin_grant"


class TheirBan(BanBody):
    """A ban by default."""

    model_config = ConfigDict(alias_generator=name_there)

    banned: bool = True


class TheirFreeze(FreezeQuery):
    """A freeze by default."""

    frozen: bool = True


@validate_request(TheirGrant)
@idempotent
async def grant(data: TheirGrant) -> Response:
    """Grant credits to an account, or take them."""
    entry = await operations.grant(
        data.hub_username, data.delta, data.reason, actor=require_operator(), http_request_id=request_id()
    )
    granted = Granted(
        hub_username=data.hub_username, new_balance=entry.balance_after, transaction_id=entry.id
    )
    return answer(granted)


@validate_request(TheirBan)
@idempotent
async def ban(data: TheirBan) -> Response:
    """Ban or unban an account."""
    account = await standing.ban(
        platform(), data.hub_username, data.banned, actor=require_operator(), http_request_id=request_id()
    )
    return answer(Banned(hub_username=account.hub_username, banned=account.banned))


@validate_querystring(TheirFreeze)
@idempotent
async def freeze(query_args: TheirFreeze) -> Response:
    """Turn the kill switch for new simulation requests on or off."""
    await operations.freeze(query_args.frozen, actor=require_operator(), http_request_id=request_id())
    return answer(Frozen(submissions_frozen=query_args.frozen))


class TheirOrder(ChannelBody):
    """An order, by default without pileup."""

    pileup: int = 0


async def simulate() -> Response:
    """Order simulated events."""
    return await ordered(TheirOrder)


async def datasets() -> Response:
    """Names of the configs of public datasets with the platform's tag, as the client loads them."""
    found = await platform().event_display.datasets()
    configs = dict.fromkeys(entry.config for entry in found.entries if not entry.sample)
    return Response(json.dumps(list(configs)), content_type=JSON)


async def submit(task: str) -> Response:
    """Predictions; columns besides the task's are dropped, and scores sent along are ignored."""
    receipt = await received_submission(task, model_repo_field="model_repo_id", extra_columns="ignore")
    return answer(receipt)


@dataclass(frozen=True, slots=True)
class Route:
    """A call: its handler, and the conversion of the response."""

    method: str
    path: str
    #: A handler of this plugin's, or the name of one of the platform's.
    handler: str | Callable[..., Awaitable[Response]]
    shape: Callable[[dict[str, Any]], Any] = names.renamed


ROUTES: Final = (
    Route("GET", "/healthz", "health.healthz"),
    Route("GET", "/v1/me", "accounts.me"),
    Route("GET", "/v1/me/transactions", "accounts.transactions"),
    Route("POST", "/v1/simulate", simulate, names.request_record),
    Route("GET", "/v1/requests", "simulations.requests", names.request_record),
    Route("GET", "/v1/requests/<request_id>", "simulations.find", names.request_record),
    Route("GET", "/v1/datasets", datasets),
    Route("GET", "/v1/benchmark/tasks", "benchmarks.tasks", names.task),
    Route("POST", "/v1/benchmark/<task>/submit", submit),
    Route("GET", "/v1/leaderboard/<task>", "leaderboards.leaderboard", names.place),
    Route("GET", "/v1/leaderboard/<task>/self-reported", "leaderboards.self_reported", names.place),
    Route("POST", "/admin/grant", grant),
    Route("POST", "/admin/ban", ban),
    Route("POST", "/admin/freeze", freeze),
    Route("GET", "/admin/usage", "admin.reports.usage", names.usage),
    Route("GET", "/admin/analytics/channels", "admin.reports.channels", names.channel),
    Route("GET", "/admin/analytics/daily", "admin.reports.daily", names.day),
    Route("GET", "/admin/analytics/failures", "admin.reports.failures", names.failures),
)


def make_blueprint() -> Blueprint:
    """The calls of the table."""
    blueprint = Blueprint("colliderml_compat", __name__, url_prefix=PREFIX)
    for number, route in enumerate(ROUTES):
        view = partial(_answer, route)
        blueprint.add_url_rule(route.path, f"route_{number}", view, methods=[route.method])
    return blueprint


async def _answer(route: Route, **arguments: str) -> Response:
    if route.path.startswith("/admin/"):
        await only_operators()  # as the platform's own: before anything of the request is read
    query = request.args.items(multi=True)
    here = MultiDict((name, names.query(name, value)) for name, value in query)
    request.args = here  # pyright: ignore[reportAttributeAccessIssue] -- the proxy's type forbids it
    if "request_id" in arguments:  # which may be written as a UUID there
        arguments["request_id"] = arguments["request_id"].replace("-", "")
    handler = current_app.view_functions[route.handler] if isinstance(route.handler, str) else route.handler
    response = cast(Response, await current_app.ensure_async(handler)(**arguments))
    if response.status_code != HTTPStatus.NOT_MODIFIED:
        content, shape = json.loads(await response.get_data()), route.shape
        shaped = [shape(item) for item in content] if isinstance(content, list) else shape(content)
        response.set_data(json.dumps(shaped))
    if "Location" in response.headers:
        response.headers["Location"] = PREFIX + response.headers["Location"]
    return response
