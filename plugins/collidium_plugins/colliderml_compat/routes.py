"""Routes of the ``colliderml`` client, with the conversion of names and values to and from the platform's."""

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
from collidium.api.authentication import Caller, OperatorCaller, only_operators, signed_in
from collidium.api.benchmarks import received_submission
from collidium.api.context import platform
from collidium.api.declaration import declared_model
from collidium.api.idempotency import idempotent
from collidium.api.operator_schemas import BanBody, FreezeQuery, GrantBody
from collidium.api.orders import ChannelBody
from collidium.api.schemas import Text
from collidium.api.simulations import ordered
from collidium.order import ORDER_FIELDS
from collidium.overrides.quart import replace_query
from collidium.records import Banned, Frozen
from collidium.submissions import rulings

PREFIX: Final = "/compat/colliderml"

#: The client's names of our fields and metrics, where they differ.
NAMES: Final = {
    "hub_username": "hf_username",
    "output_hub_repo": "output_hf_repo",
    "eval_events": "eval_event_range",
    "requests": "n_requests",
    "trackml_weighted_efficiency": "trackml_eff",
    "duplicate_rate": "dup_rate",
    "light_rejection_70": "light_rej_70",
    "c_rejection_70": "c_rej_70",
    "signal_efficiency_fpr1": "sig_eff_1fpr",
    "events_per_second": "events_per_sec",
    "events_per_second_local": "events_per_sec_local",
    "events_per_second_streaming": "events_per_sec_streaming",
}

#: Our names of the metrics that the client shows, for tasks with more metrics.
METRICS: Final = {
    "tracking": ("trackml_weighted_efficiency", "fake_rate", "duplicate_rate", "physics_eff_pt1"),
    "tracking_latency": ("wallclock_s", "events_per_second"),
    "anomaly": ("auroc", "signal_efficiency_fpr1"),
}

#: Maxima of numbers in a query. The client expects larger ones to be clipped, not rejected.
MAXIMA: Final = {"limit": 1000, "days": 3660}

#: Our values for the client's ``state`` in queries. In responses, the client accepts ours.
STATES: Final = {"submitted": "queued"}


def client_name(name: str) -> str:
    """Return the client's name of a field or metric."""
    return NAMES.get(name, name)


def query(name: str, value: str) -> str:
    """Convert the value of a query parameter from the client's."""
    if name in MAXIMA and value.isascii() and value.isdecimal():
        return str(min(int(value[:18]), MAXIMA[name]))
    return STATES.get(value, value) if name == "state" else value


def renamed(answer: Any) -> Any:
    """Rename all fields of a response to the client's names."""
    if isinstance(answer, dict):
        return {client_name(name): renamed(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [renamed(value) for value in answer]
    return answer


def request_record(request: dict[str, Any]) -> dict[str, Any]:
    """Convert a simulation request."""
    return {
        **renamed(request),
        client_name("output_hub_repo"): _repo_id(request["output_hub_repo"]),
        "id": request["request_id"],
        "estimated_completion_seconds": request["estimated_completion_seconds"] or 0,
        "actual_node_hours": request["node_hours"] if request["finished_at"] else None,
        "error_message": request["reason"] if request["state"] == "failed" else None,
    }


def task(card: dict[str, Any]) -> dict[str, Any]:
    """Convert a task's card; the primary metric is first, except for tasks in ``METRICS``."""
    metrics = {metric["name"]: metric["higher_is_better"] for metric in card["metrics"]}
    primary_first = sorted(metrics, key=lambda name: name != card["primary_metric"])
    shown = [name for name in METRICS.get(card["name"], primary_first) if name in metrics]
    return {
        **{field: card[field] for field in ("name", "title", "description", "dataset", "inputs")},
        "metrics": [client_name(name) for name in shown],
        "higher_is_better": {client_name(name): metrics[name] for name in shown},
        client_name("eval_events"): [card["eval_events"]["start"], card["eval_events"]["stop"]],
    }


def place(ranked: dict[str, Any]) -> dict[str, Any]:
    """Convert a row of a leaderboard; self-reported ones have no rank."""
    return {
        "rank": None,
        **renamed(ranked),
        "id": ranked["submission_id"],
        "is_baseline": ranked["baseline"],
    }


def usage(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert the month's usage to a list of accounts."""
    users: list[dict[str, Any]] = renamed(report["users"])
    return users


def channel(report: dict[str, Any]) -> dict[str, Any]:
    """Convert the month's requests of a channel."""
    return {"channel": report["channel"], "n": report["requests"], "node_hours": report["node_hours"]}


def day(report: dict[str, Any]) -> dict[str, Any]:
    """Convert the requests of a day."""
    return {"day": report["date"], "n_requests": report["requests"], "node_hours": report["node_hours"]}


def failures(report: dict[str, Any]) -> dict[str, Any]:
    """Convert the month's failures; the client's rate is a fraction."""
    rate = round(report["failure_rate"] / 100, 4)
    return {"total": report["finished"], "failed": report["failed"], "failure_rate": rate}


def _repo_id(address: str | None) -> str | None:
    """Return NAMESPACE/NAME of a dataset repository's address."""
    return None if address is None else "/".join(address.rsplit("/", 2)[-2:])


class ClientGrant(GrantBody):
    """A grant, by default without a reason."""

    model_config = ConfigDict(alias_generator=client_name)

    reason: Text = "admin_grant"


class ClientBan(BanBody):
    """A ban by default."""

    model_config = ConfigDict(alias_generator=client_name)

    banned: bool = True


class ClientFreeze(FreezeQuery):
    """A freeze by default."""

    frozen: bool = True


@validate_request(ClientGrant)
@idempotent
async def grant(caller: OperatorCaller, data: ClientGrant) -> Response:
    """Grant credits to an account, or take them."""
    return answer(await operations.grant(data.hub_username, data.delta, data.reason, **caller.audit))


@validate_request(ClientBan)
@idempotent
async def ban(caller: OperatorCaller, data: ClientBan) -> Response:
    """Ban or unban an account."""
    account = await rulings.ban(platform(), data.hub_username, data.banned, **caller.audit)
    return answer(Banned(hub_username=account.hub_username, banned=account.banned))


@validate_querystring(ClientFreeze)
@idempotent
async def freeze(caller: OperatorCaller, query_args: ClientFreeze) -> Response:
    """Turn the kill switch for new simulation requests on or off."""
    await operations.freeze(query_args.frozen, **caller.audit)
    return answer(Frozen(submissions_frozen=query_args.frozen))


ClientOrder: Final = declared_model(
    "ClientOrder", "An order, by default without pileup.", ChannelBody, ORDER_FIELDS, pileup=0
)


@signed_in
async def simulate(caller: Caller) -> Response:
    """Order simulated events."""
    return await ordered(caller, ClientOrder)


async def datasets() -> Response:
    """List names of configs of public datasets with the platform's tag, as the client loads them."""
    found = await platform().event_display.datasets()
    configs = dict.fromkeys(entry.config for entry in found.entries if not entry.sample)
    return Response(json.dumps(list(configs)), content_type=JSON)


@signed_in
async def submit(caller: Caller, task: str) -> Response:
    """Submit predictions. Unknown columns and scores that the client sends are ignored."""
    receipt = await received_submission(
        caller, task, model_repo_field="model_repo_id", extra_columns="ignore"
    )
    return answer(receipt)


@dataclass(frozen=True, slots=True)
class Route:
    """A route with its handler and the conversion of its response."""

    method: str
    path: str
    #: A handler of this module, or the endpoint of one of the platform's.
    handler: str | Callable[..., Awaitable[Response]]
    shape: Callable[[dict[str, Any]], Any] = renamed


ROUTES: Final = (
    Route("GET", "/healthz", "health.healthz"),
    Route("GET", "/v1/me", "accounts.me"),
    Route("GET", "/v1/me/transactions", "accounts.transactions"),
    Route("POST", "/v1/simulate", simulate, request_record),
    Route("GET", "/v1/requests", "simulations.requests", request_record),
    Route("GET", "/v1/requests/<request_id>", "simulations.find", request_record),
    Route("GET", "/v1/datasets", datasets),
    Route("GET", "/v1/benchmark/tasks", "benchmarks.tasks", task),
    Route("POST", "/v1/benchmark/<task>/submit", submit),
    Route("GET", "/v1/leaderboard/<task>", "leaderboards.leaderboard", place),
    Route("GET", "/v1/leaderboard/<task>/self-reported", "leaderboards.self_reported", place),
    Route("POST", "/admin/grant", grant),
    Route("POST", "/admin/ban", ban),
    Route("POST", "/admin/freeze", freeze),
    Route("GET", "/admin/usage", "admin.requests.usage", usage),
    Route("GET", "/admin/analytics/channels", "admin.requests.channels", channel),
    Route("GET", "/admin/analytics/daily", "admin.requests.daily", day),
    Route("GET", "/admin/analytics/failures", "admin.requests.failures", failures),
)


def make_blueprint() -> Blueprint:
    """Make a blueprint with :data:`ROUTES`."""
    blueprint = Blueprint("colliderml_compat", __name__, url_prefix=PREFIX)
    for number, route in enumerate(ROUTES):
        view = partial(_answer, route)
        blueprint.add_url_rule(route.path, f"route_{number}", view, methods=[route.method])
    return blueprint


async def _answer(route: Route, **arguments: str) -> Response:
    if route.path.startswith("/admin/"):
        await only_operators()  # before the request is parsed, as in the platform's own routes
    sent = request.args.items(multi=True)
    converted = MultiDict((name, query(name, value)) for name, value in sent)
    replace_query(request, converted)
    if "request_id" in arguments:  # which the client may write as a UUID
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
