"""``/v1/benchmark``, ``/v1/leaderboard``, ``/v1/submissions``: the benchmark loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cachetools import LRUCache
from quart import Blueprint, Response, current_app, request
from quart.blueprints import BlueprintSetupState
from quart_schema import document_response, security_scheme, tag, validate_querystring

from collidium.accounts import AccountView
from collidium.api import metrics
from collidium.api.answers import WrittenPage, answer, answer_list, page_of
from collidium.api.authentication import caller, signed_in
from collidium.api.bodies import receive_to_file
from collidium.api.context import platform
from collidium.api.in_flight import InFlight
from collidium.api.openapi import predictions_body
from collidium.api.schemas import (
    Checked,
    LeaderboardQuery,
    Place,
    Receipt,
    SubmissionModel,
    SubmitQuery,
    TaskModel,
)
from collidium.benchmarks import cards, submissions
from collidium.benchmarks import leaderboard as boards
from collidium.benchmarks.fronts import Fronts
from collidium.benchmarks.leaderboard import Edition, RankedSubmission
from collidium.benchmarks.predictions import ExtraColumns
from collidium.benchmarks.submissions import Predictions, as_mapping
from collidium.errors import InvalidInput
from collidium.settings import MEBIBYTE

blueprint = Blueprint("benchmarks", __name__, url_prefix="/v1")

#: The form part that holds the file, when it is not the body itself.
PART = "predictions"

#: Memory for pages of leaderboards as they were written out, and what each takes beside its text.
PAGES_BYTES = 16 * MEBIBYTE
PAGE_OVERHEAD = 2048

_PAGES = "collidium.leaderboard_pages"
_FRONTS = "collidium.leaderboard_fronts"
_IN_FLIGHT = "collidium.in_flight"

Pages = LRUCache[tuple[Edition, LeaderboardQuery], WrittenPage]


@blueprint.record
def _prepare(state: BlueprintSetupState) -> None:
    """What an app keeps between requests."""
    state.app.extensions[_IN_FLIGHT] = InFlight()
    state.app.extensions[_FRONTS] = Fronts()
    state.app.extensions[_PAGES] = Pages(PAGES_BYTES, lambda page: PAGE_OVERHEAD + len(page.body))


@blueprint.get("/benchmark/tasks")
@tag(["benchmark"])
@document_response(list[TaskModel])
async def tasks() -> Response:
    """The tasks that can be worked on, each with its card."""
    listed = await cards.listed_cards(platform())
    return answer_list([TaskModel.model_validate(card) for card in listed])


@blueprint.get("/benchmark/<task>")
@tag(["benchmark"])
@document_response(TaskModel)
async def task_card(task: str) -> Response:
    """The card of one task."""
    return answer(TaskModel.model_validate(await cards.listed_card(platform(), task)))


@blueprint.post("/benchmark/<task>/submit")
@tag(["benchmark"])
@security_scheme([{"hub_token": []}])
@predictions_body(PART)
@signed_in
@validate_querystring(SubmitQuery)
@document_response(Receipt)
async def submit(task: str, query_args: SubmitQuery) -> Response:
    """Score predictions, keep them, and earn credits for new bests.

    The body is a parquet file, or a form whose part `predictions` is one. The same file again returns the
    first submission. All problems of a refused file are listed at once.
    """
    return answer(await received_submission(task, query_args.model_repo))


@blueprint.post("/benchmark/<task>/check")
@tag(["benchmark"])
@security_scheme([{"hub_token": []}])
@predictions_body(PART)
@document_response(Checked)
async def check(task: str) -> Response:
    """Check predictions without submitting them: a dry run that keeps nothing and tells no score."""
    account = await caller()
    async with _received(task, account) as (predictions, _):
        evaluation = await submissions.check(platform(), account, task, predictions)
    return answer(Checked(rows=evaluation.rows, warnings=list(evaluation.warnings)))


@blueprint.get("/submissions/<submission_id>")
@tag(["benchmark"])
@document_response(SubmissionModel)
async def submission(submission_id: str) -> Response:
    """A submission: its scores, and the versions and file they belong to."""
    return answer(SubmissionModel.model_validate(await submissions.find(submission_id)))


@blueprint.get("/leaderboard/<task>")
@tag(["benchmark"])
@validate_querystring(LeaderboardQuery)
@document_response(list[Place])
async def leaderboard(task: str, query_args: LeaderboardQuery) -> Response:
    """The leaderboard of a task: best primary metric first, ties earlier first.

    With `pareto=true` only the places that no other beats in one of the task's two `pareto` metrics without
    being worse in the other. The answer has an ETag, so that asking again with If-None-Match costs next to
    nothing.
    """
    edition = await boards.current_edition(task)
    pages: Pages = current_app.extensions[_PAGES]
    page = pages.get((edition, query_args))
    if page is None:
        places, cursor = await _places(edition, query_args)
        page = page_of([_place(place) for place in places], query_args, cursor)
        if places:  # any number of cursors lead past the end
            pages[edition, query_args] = page
    response = page.response()
    response.set_etag(f"{edition.truth_version}-{edition.revision}")
    return await response.make_conditional(request)


async def _places(edition: Edition, query: LeaderboardQuery) -> tuple[list[RankedSubmission], str | None]:
    fronts: Fronts = current_app.extensions[_FRONTS]
    task = platform().tasks.things.get(edition.task)
    front = await fronts.of(edition, task.card if task else None)
    if not query.pareto:
        return await boards.places(edition, limit=query.limit, cursor=query.cursor, front=front)
    if front is None:
        detail = f"pareto: task {edition.task!r} does not trade two metrics; ask for the whole leaderboard"
        raise InvalidInput(detail, errors=[{"field": "pareto", "detail": "not for this task"}])
    return await boards.places_on_front(front, limit=query.limit, cursor=query.cursor)


async def received_submission(
    task: str,
    model_repo: str | None = None,
    *,
    model_repo_field: str = "model_repo",
    extra_columns: ExtraColumns = "refuse",
) -> Receipt:
    """Take the predictions that the request carries; the form may name the model's repository, too."""
    account = await caller()
    async with _received(task, account) as (predictions, fields):
        outcome = await submissions.submit(
            platform(),
            account,
            task,
            predictions,
            model_repo=model_repo or fields.get(model_repo_field) or None,
            extra_columns=extra_columns,
        )
    if not outcome.deduplicated:
        metrics.SUBMISSIONS.labels(task).inc()
    return Receipt.model_validate({**as_mapping(outcome.submission), "deduplicated": outcome.deduplicated})


@asynccontextmanager
async def _received(task: str, account: AccountView) -> AsyncIterator[tuple[Predictions, dict[str, str]]]:
    """The uploaded predictions, to be worked on within the context.

    Refused before a byte is read: for a task that takes none, and more at once than an account may send.
    """
    settings = platform().settings
    largest = await submissions.largest_file(platform(), task)
    in_flight: InFlight = current_app.extensions[_IN_FLIGHT]
    with in_flight.one_more(account.id, settings.evaluations_in_flight):
        async with receive_to_file(request, settings.uploads, largest, part=PART) as file:
            yield Predictions(file.path, file.sha256, file.size_bytes), dict(file.fields)


def _place(place: RankedSubmission) -> Place:
    mapping = {"rank": place.rank, "pareto": place.pareto, **as_mapping(place.submission)}
    return Place.model_validate(mapping)
