"""``/v1/evaluations``: models that the server runs."""

from __future__ import annotations

from msgspec import structs
from quart import Blueprint, Response, request
from quart_schema import document_response, operation_id, validate_querystring

from collidium.api.answers import answer, answer_page, answer_stream
from collidium.api.authentication import Caller, signed_in
from collidium.api.benchmarks import admission_to
from collidium.api.bodies import receive_to_file
from collidium.api.bodies.receive import FORM
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.openapi import model_body, stream_answer
from collidium.api.schemas import EvaluationsQuery, SubmitQuery
from collidium.errors import Conflict, InvalidInput, PaymentRequired, Unavailable
from collidium.inference.sandbox import MAX_MODEL_BYTES
from collidium.model_runs import model_queue
from collidium.records import Evaluation
from collidium.submissions import receiving, reruns, submit

blueprint = Blueprint("evaluations", __name__, url_prefix="/v1")


@blueprint.post("/benchmark/<task>/submit/model")
@model_body
@signed_in
@operation_id("submit_model")
@validate_querystring(SubmitQuery)
@document_response(Evaluation, 202)
@raises(PaymentRequired, Conflict, Unavailable)
async def submit_model(caller: Caller, task: str, query_args: SubmitQuery) -> Response:
    """Submit a model that the server runs on the events of the task or challenge: 202 with a Location.

    The body is a form with an ONNX file as part `model` and its manifest (TOML) as part `manifest`. All
    problems of the manifest are reported at once. Submitting the same model again returns its first
    evaluation.
    """
    submit.validated_links({"model_repo": query_args.model_repo or None})
    settings = platform().settings
    async with (
        admission_to(caller, task, again=True) as admission,
        receive_to_file(
            request, settings.uploads, MAX_MODEL_BYTES, part="model", media_types=(FORM,), texts=("manifest",)
        ) as file,
    ):
        if "manifest" not in file.fields:
            detail = "the form has no part named 'manifest'"
            raise InvalidInput(detail, errors=[{"field": "manifest", "detail": detail}])
        row, deduplicated = await receiving.receive(
            platform(),
            admission,
            submit.Predictions(file.path, file.sha256, file.size_bytes),
            file.fields["manifest"],
            check_claim=caller.check_claim,
            model_repo=query_args.model_repo or file.fields.get("model_repo") or None,
        )
    response = answer(structs.replace(model_queue.view(row), deduplicated=deduplicated), 202)
    response.headers["Location"] = f"/v1/evaluations/{row.id}"
    return response


@blueprint.get("/me/evaluations")
@signed_in
@operation_id("evaluations")
@validate_querystring(EvaluationsQuery)
@document_response(list[Evaluation])
async def list_(caller: Caller, query_args: EvaluationsQuery) -> Response:
    """Your models that the server runs or ran, newest first."""
    return await listed(query_args, caller.account.id)


async def listed(query: EvaluationsQuery, account_id: int | None) -> Response:
    """A page of one account's evaluations, or of all accounts'; also for operators."""
    found = await model_queue.list_evaluations(
        limit=query.limit + 1, account_id=account_id, after=query.cursor, state=query.state
    )
    return answer_page(found, query, lambda last: last.evaluation_id)


@blueprint.get("/evaluations/<evaluation_id>")
@signed_in
@operation_id("evaluation")
@document_response(Evaluation)
async def show(caller: Caller, evaluation_id: str) -> Response:
    """The progress or result of your model."""
    return answer(model_queue.view(await model_queue.find(evaluation_id, caller.account.id)))


@blueprint.get("/evaluations/<evaluation_id>/progress")
@operation_id("evaluation_progress")
@signed_in
@stream_answer
async def watch(caller: Caller, evaluation_id: str) -> Response:
    """The evaluation as server-sent events: its JSON at once, and within two seconds of each change.

    The stream ends with the evaluation, after some minutes, and when the server stops: reconnect then. The
    number of streams per account is limited (429).
    """
    await model_queue.find(evaluation_id, caller.account.id)

    async def look() -> Evaluation:
        return model_queue.view(await model_queue.find(evaluation_id))

    return answer_stream(platform().watching.stream(evaluation_id, caller.account.id, look))


@blueprint.post("/submissions/<submission_id>/reproduce")
@signed_in
@operation_id("reproduce")
@document_response(Evaluation, 202)
@raises(PaymentRequired, Conflict, Unavailable)
async def reproduce(caller: Caller, submission_id: str) -> Response:
    """Run the model of your submission on public events, at the price of a model, and compare the scores.

    The submission shows the result (`reproduction`), which never counts. The model runs once on the same
    events: repeated calls return the same run.
    """
    return answer(await reruns.reproduce(platform(), caller.account, submission_id), 202)


@blueprint.post("/evaluations/<evaluation_id>/cancel")
@signed_in
@operation_id("cancel_evaluation")
@document_response(Evaluation)
@raises(Conflict)
async def cancel(caller: Caller, evaluation_id: str) -> Response:
    """Cancel the evaluation of your model; it still counts towards your quota."""
    row = await model_queue.find(evaluation_id, caller.account.id)
    return answer(model_queue.view(await model_queue.cancel(row)))
