"""``/v1/uploads``: resumable uploads, according to draft-ietf-httpbis-resumable-upload-12.

A request with ``Upload-Complete: ?0`` to the address that accepts a whole file creates an upload
(:mod:`~collidium.api.benchmarks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quart import Blueprint, Response, request
from quart_schema import document_response, operation_id, validate_headers
from tortoise.timezone import now

from collidium.api import benchmarks
from collidium.api.answers import answer
from collidium.api.authentication import Caller, signed_in
from collidium.api.bodies import append_to_file
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.openapi import partial_body, upload_ended, upload_state
from collidium.api.schemas import AppendHeaders
from collidium.errors import BadRequest, CollidiumError, Conflict, InvalidInput, TooLarge, Unavailable
from collidium.files.held import GrowingFile
from collidium.records import Receipt
from collidium.submissions import admissions, reading, submit, uploads

blueprint = Blueprint("uploads", __name__, url_prefix="/v1/uploads")


@blueprint.get("/<upload_id>")
@signed_in
@operation_id("upload_offset")
@upload_state
async def offset(caller: Caller, upload_id: str) -> Response:
    """The state of your upload, in headers alone: HEAD works as well."""
    upload = await uploads.find(caller.account, upload_id)
    return await _state(upload)


@blueprint.patch("/<upload_id>")
@signed_in
@operation_id("append_to_upload")
@partial_body
@upload_state
@validate_headers(AppendHeaders)
@document_response(Receipt)
@raises(Conflict, Unavailable)
async def append(caller: Caller, upload_id: str, headers: AppendHeaders) -> Response:
    """Append to your upload; the response to the last part (`Upload-Complete: ?1`) is that to the whole file.

    Before that the status is 204. It is 409 with the correct `Upload-Offset` if the request has another, or
    while another request appends.
    """
    upload = await uploads.find(caller.account, upload_id)
    if upload.submission_id is not None:
        return await _completed(upload)
    is_last = headers.upload_complete == "?1"
    async with benchmarks.admission_to(caller, upload.challenge, upload.began_at) as admission:
        await admissions.require_in_time(platform(), admission)
        async with _opened(upload, headers.upload_offset) as file:
            try:
                await append_to_file(request, file, upload.size_bytes)
            except TooLarge:
                await uploads.discard(platform().settings, upload)
                raise
            if is_last:
                return await _scored(caller, upload, admission, file)
    return await _state(upload)


@blueprint.delete("/<upload_id>")
@signed_in
@operation_id("cancel_upload")
@upload_ended
@raises(Conflict)
async def cancel(caller: Caller, upload_id: str) -> Response:
    """Cancel your upload and delete what was received of it."""
    upload = await uploads.find(caller.account, upload_id)
    async with _opened(upload):
        await uploads.discard(platform().settings, upload)
    return Response(status=204)


@asynccontextmanager
async def _opened(upload: uploads.Upload, offset: int | None = None) -> AsyncIterator[GrowingFile]:
    """Open the file of an upload for this request alone, to append at ``offset``; raises Conflict."""
    async with uploads.opened(platform().settings, upload) as file:
        if file is None:
            there = await uploads.offset_of(platform().settings, upload)
            raise Conflict(
                "another request appends to this upload, or has ended it",
                headers={"Upload-Offset": str(there), "Retry-After": "1"},
            )
        if offset not in {None, file.size}:
            raise Conflict(
                f"the upload has {file.size:,} bytes, and the request begins at {offset}",
                headers={"Upload-Offset": str(file.size), "Upload-Complete": "?0"},
            )
        yield file


async def _scored(
    caller: Caller, upload: uploads.Upload, admission: admissions.Admission, file: GrowingFile
) -> Response:
    if file.size != upload.size_bytes:
        raise BadRequest(
            f"{file.size:,} of {upload.size_bytes:,} bytes are there; the upload is not complete"
        )
    settings = platform().settings
    try:
        sha256 = await asyncio.to_thread(lambda: file.sha256)
        if sha256 != upload.sha256:
            raise BadRequest(f"the file's sha256 is {sha256}, and {upload.sha256} was announced")
        predictions = submit.Predictions(file.path, sha256, file.size)
        receipt = await benchmarks.scored(caller, admission, predictions, upload.model_repo)
    except CollidiumError as error:
        # The error is about the whole file, not about the request that appended to it.
        error.headers["Upload-Complete"] = "?1"
        if isinstance(error, InvalidInput):  # other errors are not about the file, which can be sent again
            await uploads.discard(settings, upload)
        raise
    await uploads.complete(settings, upload, receipt.submission_id)
    return _final(receipt)


async def _completed(upload: uploads.Upload) -> Response:
    """Return the receipt again, for a client that lost it."""
    if request.content_length or "Transfer-Encoding" in request.headers:
        raise BadRequest("the upload is complete: nothing can be appended")
    return _final(Receipt.of(await reading.find(platform(), upload.submission_id or ""), deduplicated=True))


def _final(receipt: Receipt) -> Response:
    response = answer(receipt)
    response.headers["Upload-Complete"] = "?1"
    return response


async def _state(upload: uploads.Upload) -> Response:
    left = int((upload.expires_at - now()).total_seconds())
    return Response(
        status=204,
        headers={
            "Upload-Offset": str(await uploads.offset_of(platform().settings, upload)),
            "Upload-Length": str(upload.size_bytes),
            "Upload-Complete": "?0" if upload.submission_id is None else "?1",
            "Upload-Limit": f"max-age={left}",
            "Cache-Control": "no-store",
        },
    )
