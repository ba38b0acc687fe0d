"""``/admin/requests``: everybody's simulation requests, their ends and their outputs."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import (
    document_response,
    operation_id,
    validate_querystring,
)

from collidium import accounts, simulations
from collidium.api.answers import answer, answer_list
from collidium.api.authentication import request_id as http_request_id
from collidium.api.authentication import require_operator
from collidium.api.context import platform
from collidium.api.idempotency import idempotent
from collidium.api.openapi import parquet_answer
from collidium.api.order_schemas import AllRequestsQuery
from collidium.api.simulations import answer_with_output, cancelling, listed
from collidium.records import OperatedRequest, OutputFile, SimulationRequest

blueprint = Blueprint("requests", __name__, url_prefix="/requests")


@blueprint.get("")
@validate_querystring(AllRequestsQuery)
@document_response(list[SimulationRequest])
async def requests(query_args: AllRequestsQuery) -> Response:
    """Simulation requests of everybody, newest first."""
    account = None if query_args.user is None else await accounts.find(query_args.user)
    return await listed(query_args, account, query_args.channel)


@blueprint.get("/<request_id>")
@operation_id("request")
@document_response(OperatedRequest)
async def find(request_id: str) -> Response:
    """Any account's simulation request, with its job at the runner and what is done next for it."""
    return answer(await simulations.find_as_operator(request_id))


@blueprint.post("/<request_id>/cancel")
@document_response(SimulationRequest)
@document_response(SimulationRequest, 202)
@idempotent
async def cancel(request_id: str) -> Response:
    """Cancel any simulation request, as its owner could: 202 while its job is being stopped."""
    cancelled = await simulations.cancel_as_operator(
        platform(), request_id, actor=require_operator(), http_request_id=http_request_id()
    )
    return cancelling(cancelled)


@blueprint.get("/<request_id>/output")
@document_response(list[OutputFile])
async def output(request_id: str) -> Response:
    """The files of a request's output that are kept: none before its job has completed."""
    return answer_list(await simulations.output_of(request_id, None))


@blueprint.get("/<request_id>/output/<path:path>")
@parquet_answer
async def output_file(request_id: str, path: str) -> Response:
    """One file of a request's output."""
    return await answer_with_output(request_id, path, None)
