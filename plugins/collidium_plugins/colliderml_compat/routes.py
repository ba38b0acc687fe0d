"""The client's calls, and the handlers that answer them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

from quart import Blueprint, Response, current_app, request
from werkzeug.datastructures import MultiDict

from collidium.api.answers import JSON, answer
from collidium.api.authentication import require_operator
from collidium.api.benchmarks import received_submission
from collidium.api.context import platform
from collidium.api.schemas import ChannelBody
from collidium.api.simulations import ordered
from collidium_plugins.colliderml_compat import names, operators

PREFIX: Final = "/compat/colliderml"


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
    Route("POST", "/admin/grant", operators.grant),
    Route("POST", "/admin/ban", operators.ban),
    Route("POST", "/admin/freeze", operators.freeze),
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
        require_operator()  # as the platform's own: before anything of the request is read
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
