"""``/v1/benchmark`` and ``/v1/submissions``: tasks, submitting predictions, and submissions."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from quart import Blueprint, Response, current_app, request
from quart.blueprints import BlueprintSetupState
from quart_schema import (
    document_response,
    operation_id,
    validate_querystring,
    validate_request,
)
from quart_schema.conversion import convert_headers
from quart_schema.validation import RequestHeadersValidationError

from collidium.api.answers import answer, answer_list, answer_page
from collidium.api.authentication import Caller, signed_in
from collidium.api.bodies import receive_to_file
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.openapi import file_body, predictions_body
from collidium.api.schemas import (
    ComparisonQuery,
    FromHubBody,
    LinksBody,
    MySubmissionsQuery,
    SubmitQuery,
    UploadHeaders,
)
from collidium.challenges import tasklist
from collidium.errors import BadRequest, Conflict, NotFound, Unavailable, UpstreamError
from collidium.records import Checked, Comparison, Receipt, Submission, TaskCard
from collidium.runtime import metrics
from collidium.runtime.limits import InFlight
from collidium.scoring.predictions import ExtraColumns
from collidium.submissions import admissions, reading, rulings, submit, uploads

blueprint = Blueprint("benchmarks", __name__, url_prefix="/v1")

_IN_FLIGHT = "collidium.in_flight"


@blueprint.record
def _prepare(state: BlueprintSetupState) -> None:
    state.app.extensions[_IN_FLIGHT] = InFlight()


@blueprint.get("/benchmark/tasks")
@document_response(list[TaskCard])
async def tasks() -> Response:
    """The listed tasks with their cards."""
    listed = await tasklist.listed_cards(platform())
    return answer_list(listed)


@blueprint.get("/benchmark/<task>")
@operation_id("task")
@document_response(TaskCard)
async def task_card(task: str) -> Response:
    """The card of one task."""
    return answer(await tasklist.listed_card(platform(), task))


@blueprint.post("/benchmark/<task>/submit")
@predictions_body
@signed_in
@validate_querystring(SubmitQuery)
@operation_id("submit")
@document_response(Receipt)
@raises(Conflict, Unavailable)
async def submit_predictions(caller: Caller, task: str, query_args: SubmitQuery) -> Response:
    """Score predictions, store them, and earn credits for new bests.

    The body is a parquet file, or a form with the parquet file as part `predictions`. Submitting the same
    file again returns the first submission, and links it to `model_repo` if it has no model yet; 409 if it
    has another. All problems of an invalid file are reported at once. `Upload-Complete: ?0` without a body
    starts a resumable upload: 201 with a Location.
    """
    return await submitted(caller, task, query_args.model_repo)


@blueprint.post("/benchmark/<task>/submit/from-hub")
@signed_in
@validate_request(FromHubBody)
@document_response(Receipt)
@raises(Conflict, UpstreamError, Unavailable)
async def submit_from_hub(caller: Caller, task: str, data: FromHubBody) -> Response:
    """Submit predictions from a dataset repository of the hub.

    The server downloads them with your token, at the named commit or the current one of the branch or tag. If
    you have no token of the hub, the repository must be public.
    """
    uploads.require_valid(data.source, data.model_repo)
    async with (
        admission_to(caller, task) as admission,
        uploads.downloaded(
            platform().settings, caller.hub_token, data.source, admission.largest_file
        ) as predictions,
    ):
        return answer(await scored(caller, admission, predictions, data.model_repo))


@blueprint.post("/benchmark/<task>/check")
@signed_in
@file_body
@document_response(Checked)
@raises(Conflict, Unavailable)
async def check(caller: Caller, task: str) -> Response:
    """Validate predictions without submitting them: nothing is stored, and no score is returned.

    A form as of `submit` is accepted, too.
    """
    return await checked(caller, task)


async def checked(caller: Caller, challenge: str) -> Response:
    """Validate the predictions of the request."""
    async with _received(caller, challenge) as (admission, predictions, _):
        evaluation = await submit.check(platform(), admission, predictions)
    return answer(Checked(True, rows=evaluation.rows, warnings=tuple(evaluation.warnings)))


@blueprint.get("/submissions/<submission_id>")
@document_response(Submission)
async def submission(submission_id: str) -> Response:
    """A submission with its scores, file and versions."""
    return answer(await reading.find(platform(), submission_id))


@blueprint.get("/submissions/<submission_id>/comparison")
@operation_id("compare")
@validate_querystring(ComparisonQuery)
@document_response(Comparison)
async def compare(submission_id: str, query_args: ComparisonQuery) -> Response:
    """The differences between the scores of two submissions to a task, the first minus the other."""
    return answer(await reading.compare(submission_id, query_args.other))


@blueprint.patch("/submissions/<submission_id>")
@signed_in
@validate_request(LinksBody)
@document_response(Submission)
@raises(Conflict)
async def set_links(caller: Caller, submission_id: str, data: LinksBody) -> Response:
    """Set the links of your submission (model, code, paper), or choose it for the final results.

    Omitted fields stay as they are; null removes a link. The model is checked with your token, with the
    result in `model_claim`.
    """
    changes = data.model_dump(exclude_unset=True)
    final = changes.pop("final", None)
    if final is not None and not changes:  # also allowed to other members of the team
        await rulings.choose(caller.account, submission_id, final)
        return answer(await reading.find(platform(), submission_id))
    with _in_flight().one_more(caller.account.id, platform().settings.evaluations_in_flight):
        changed = await rulings.change(
            platform(), caller.account, submission_id, changes, final, caller.check_claim
        )
    return answer(changed)


@blueprint.post("/submissions/<submission_id>/withdraw")
@signed_in
@document_response(Submission)
@raises(Conflict)
async def withdraw(caller: Caller, submission_id: str) -> Response:
    """Withdraw your submission permanently while its challenge is open; it loses its rank."""
    return answer(await rulings.withdraw(platform(), caller.account, submission_id))


async def submitted(caller: Caller, challenge: str, model_repo: str | None) -> Response:
    """Score the predictions of the request, or start a resumable upload."""
    model_repo = model_repo or None
    if request.headers.get("Upload-Complete", "").strip() != "?0":
        return answer(await received_submission(caller, challenge, model_repo))
    headers = convert_headers(request.headers, UploadHeaders, RequestHeadersValidationError)
    if request.content_length or "Transfer-Encoding" in request.headers:
        raise BadRequest("the request that begins an upload has no body: append it to the Location by PATCH")
    submit.validated_links({"model_repo": model_repo})
    sha256 = b64decode(headers.repr_digest[9:-1]).hex()
    async with admission_to(caller, challenge) as admission:
        upload = await uploads.begin(
            admission, sha256, headers.upload_length, model_repo, platform().settings.evaluations_in_flight
        )
    size_limit = f"max-size={admission.largest_file}, max-age={int(uploads.AGE.total_seconds())}"
    return Response(status=201, headers={"Location": f"/v1/uploads/{upload.id}", "Upload-Limit": size_limit})


async def received_submission(
    caller: Caller,
    challenge: str,
    model_repo: str | None = None,
    *,
    model_repo_field: str = "model_repo",
    extra_columns: ExtraColumns = "refuse",
) -> Receipt:
    """Score the predictions of the request; the form may also name the model's repository."""
    submit.validated_links({"model_repo": model_repo})
    async with _received(caller, challenge, again=True) as (admission, predictions, fields):
        model_repo = model_repo or fields.get(model_repo_field) or None
        return await scored(caller, admission, predictions, model_repo, extra_columns)


async def scored(
    caller: Caller,
    admission: admissions.Admission,
    predictions: submit.Predictions,
    model_repo: str | None,
    extra_columns: ExtraColumns = "refuse",
) -> Receipt:
    """Score and store predictions, and count the submission."""
    outcome = await submit.submit(
        platform(),
        admission,
        predictions,
        check_claim=caller.check_claim,
        model_repo=model_repo,
        extra_columns=extra_columns,
    )
    if not outcome.deduplicated:
        metrics.SUBMISSIONS.labels(outcome.submission.task).inc()
    return Receipt.of(outcome.submission, deduplicated=outcome.deduplicated)


@asynccontextmanager
async def admission_to(
    caller: Caller, challenge: str, began_at: datetime | None = None, *, again: bool = False
) -> AsyncIterator[admissions.Admission]:
    """Admit one more file of the caller for the duration of the context; arguments as of `admitted`."""
    account = caller.account
    with _in_flight().one_more(account.id, platform().settings.evaluations_in_flight):
        options = platform(), account, challenge, caller.memberships, began_at
        async with admissions.admitted(*options, again=again) as admission:
            yield admission


@asynccontextmanager
async def _received(
    caller: Caller, challenge: str, *, again: bool = False
) -> AsyncIterator[tuple[admissions.Admission, submit.Predictions, dict[str, str]]]:
    """Receive the caller's predictions and the form's other fields for the duration of the context.

    Rejected before the body is read: predictions for a challenge that accepts none (``again``: unless the
    account may have sent them before), and uploads above the account's limit of concurrent ones.
    """
    async with (
        admission_to(caller, challenge, again=again) as admission,
        receive_to_file(
            request, platform().settings.uploads, admission.largest_file, part="predictions"
        ) as file,
    ):
        yield admission, submit.Predictions(file.path, file.sha256, file.size_bytes), dict(file.fields)


def _in_flight() -> InFlight:
    under_way: InFlight = current_app.extensions[_IN_FLIGHT]
    return under_way


@blueprint.get("/me/submissions")
@signed_in
@validate_querystring(MySubmissionsQuery)
@document_response(list[Submission])
@raises(NotFound)
async def submissions(caller: Caller, query_args: MySubmissionsQuery) -> Response:
    """Your submissions, newest first, without their earlier scores."""
    return await listed(query_args, caller.account.id)


async def listed(query: MySubmissionsQuery, account_id: int | None, *, unverified: bool = False) -> Response:
    """A page of one account's submissions, or of all accounts'; also for operators."""
    found = await reading.list_submissions(
        platform(),
        limit=query.limit + 1,
        task=query.task,
        challenge=query.challenge,
        account_id=account_id,
        unverified=unverified,
        after=query.cursor,
    )
    return answer_page(found, query, lambda last: last.submission_id)
