"""The client's calls, and the handlers that answer them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

from pydantic import field_validator
from quart import Blueprint, Response, current_app
from quart_schema import validate_querystring

from collidium.api.answers import JSON, answer
from collidium.api.authentication import caller, require_operator, signed_in
from collidium.api.benchmarks import received_submission
from collidium.api.context import platform
from collidium.api.schemas import RequestsQuery
from collidium.api.simulations import listed
from collidium_plugins.colliderml_compat import names, operators
from collidium_plugins.colliderml_compat.datasets import TaggedDatasets

PREFIX: Final = "/compat/colliderml"


class TheirRequestsQuery(RequestsQuery):
    """Which of the caller's requests are listed."""

    @field_validator("state", mode="before")
    @classmethod
    def _state_here(cls, state: object) -> object:
        return names.STATES.get(state, state) if isinstance(state, str) else state


@signed_in
@validate_querystring(TheirRequestsQuery)
async def requests(query_args: TheirRequestsQuery) -> Response:
    """The caller's simulation requests, newest first."""
    return await listed(query_args, await caller())


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
    Route("POST", "/v1/simulate", "simulations.simulate", names.request_record),
    Route("GET", "/v1/requests", requests, names.request_record),
    Route("GET", "/v1/requests/<request_id>", "simulations.find", names.request_record),
    Route("GET", "/v1/benchmark/tasks", "benchmarks.tasks", names.task),
    Route("POST", "/v1/benchmark/<task>/submit", submit),
    Route("GET", "/v1/leaderboard/<task>", "leaderboards.leaderboard", names.place),
    Route("POST", "/admin/grant", operators.grant),
    Route("POST", "/admin/ban", operators.ban),
    Route("POST", "/admin/freeze", operators.freeze),
    Route("GET", "/admin/usage", "reports.usage", names.usage),
)


def make_blueprint() -> Blueprint:
    """The calls of the table, and the list of datasets, which alone remembers something."""
    blueprint = Blueprint("colliderml_compat", __name__, url_prefix=PREFIX)
    for number, route in enumerate(ROUTES):
        view = partial(_answer, route)
        blueprint.add_url_rule(route.path, f"route_{number}", view, methods=[route.method])
    tagged = TaggedDatasets()

    @blueprint.get("/v1/datasets")
    async def datasets() -> Response:
        settings = platform().settings
        found = await tagged.names(settings.hub, settings.platform_tag)
        return Response(json.dumps(found), content_type=JSON)

    return blueprint


async def _answer(route: Route, **arguments: str) -> Response:
    if route.path.startswith("/admin/"):
        require_operator()  # as the platform's own: before anything of the request is read
    handler = current_app.view_functions[route.handler] if isinstance(route.handler, str) else route.handler
    response = cast(Response, await current_app.ensure_async(handler)(**arguments))
    if response.status_code != HTTPStatus.NOT_MODIFIED:
        content, shape = json.loads(await response.get_data()), route.shape
        shaped = [shape(item) for item in content] if isinstance(content, list) else shape(content)
        response.set_data(json.dumps(shaped))
    if "Location" in response.headers:
        response.headers["Location"] = PREFIX + response.headers["Location"]
    return response
