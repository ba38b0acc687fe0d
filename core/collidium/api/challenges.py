"""``/v1/challenges``: tasks with dates; what belongs to one is what there is of a task, by its name."""

from __future__ import annotations

from quart import Blueprint, Response
from quart.blueprints import BlueprintSetupState
from quart_schema import document_response, operation_id, validate_querystring

from collidium.api import benchmarks, leaderboards, results
from collidium.api.answers import answer, answer_list
from collidium.api.authentication import caller, signed_in
from collidium.api.benchmarks import PART
from collidium.api.context import platform
from collidium.api.openapi import predictions_body, table_answer
from collidium.api.schemas import HistoryQuery, LeaderboardQuery, ResultsQuery, SubmitQuery
from collidium.benchmarks import challenges, closing
from collidium.benchmarks.submissions import admissions
from collidium.records import BestStep, Challenge, Checked, Place, Quota, Receipt, Result

blueprint = Blueprint("challenges", __name__, url_prefix="/v1/challenges")


@blueprint.record
def _prepare(state: BlueprintSetupState) -> None:
    state.app.extensions[results.RESULTS] = results.Results()


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
    return answer(await closing.shown(platform(), name))


@blueprint.get("/<name>/quota")
@signed_in
@document_response(Quota)
async def quota(name: str) -> Response:
    """How many submissions you have left today, and until when they are taken."""
    return answer(await admissions.quota(platform(), await caller(), name))


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


@blueprint.get("/<name>/results")
@table_answer
@operation_id("results")
@validate_querystring(ResultsQuery)
@document_response(list[Result])
async def all_results(name: str, query_args: ResultsQuery) -> Response:
    """All places of a challenge's leaderboard as it is now, in one file; `format=csv`: a table.

    With `all=true` every submission, and behind them those that were disqualified
    (with the reason) or withdrawn.
    """
    return await results.written(name, query_args)


@blueprint.get("/<name>/leaderboard/history")
@operation_id("challenge_history")
@validate_querystring(HistoryQuery)
@document_response(list[BestStep])
async def history(name: str, query_args: HistoryQuery) -> Response:
    """How the best value of a metric came about, as for a task."""
    return await leaderboards.steps(name, query_args)
