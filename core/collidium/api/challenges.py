"""``/v1/challenges``: tasks with dates; what belongs to one is what there is of a task, by its name."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring

from collidium.api import benchmarks, leaderboards
from collidium.api.answers import answer, answer_list
from collidium.api.authentication import signed_in
from collidium.api.benchmarks import PART
from collidium.api.context import platform
from collidium.api.openapi import predictions_body
from collidium.api.schemas import HistoryQuery, LeaderboardQuery, SubmitQuery
from collidium.benchmarks import challenges, tasklist
from collidium.records import BestStep, Challenge, Checked, Place, Receipt

blueprint = Blueprint("challenges", __name__, url_prefix="/v1/challenges")


@blueprint.get("")
@operation_id("challenges")
@document_response(list[Challenge])
async def list_() -> Response:
    """The challenges, the next to close first; the endless ones of the tasks last."""
    return answer_list(await challenges.list_challenges(platform()))


@blueprint.get("/<name>")
@operation_id("challenge")
@document_response(Challenge)
async def show(name: str) -> Response:
    """A challenge, with the card of its task."""
    return answer(await tasklist.challenge_with_card(platform(), name))


@blueprint.post("/<name>/submit")
@predictions_body(PART)
@signed_in
@operation_id("submit_to_challenge")
@validate_querystring(SubmitQuery)
@document_response(Receipt)
async def submit(name: str, query_args: SubmitQuery) -> Response:
    """Submit predictions, as to a task."""
    return await benchmarks.submitted(name, query_args.model_repo)


@blueprint.post("/<name>/check")
@signed_in
@operation_id("check_for_challenge")
@predictions_body(PART)
@document_response(Checked)
async def check(name: str) -> Response:
    """Check predictions without submitting them, as for a task."""
    return await benchmarks.checked(name)


@blueprint.get("/<name>/leaderboard")
@operation_id("challenge_leaderboard")
@validate_querystring(LeaderboardQuery)
@document_response(list[Place])
async def leaderboard(name: str, query_args: LeaderboardQuery) -> Response:
    """The leaderboard of a challenge, as that of a task."""
    return await leaderboards.board(name, query_args)


@blueprint.get("/<name>/leaderboard/history")
@operation_id("challenge_history")
@validate_querystring(HistoryQuery)
@document_response(list[BestStep])
async def history(name: str, query_args: HistoryQuery) -> Response:
    """How the best value of a metric came about, as for a task."""
    return await leaderboards.steps(name, query_args)
