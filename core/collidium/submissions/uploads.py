"""Predictions that are uploaded in several requests, or downloaded from the hub.

An upload is a row of the database and a file of this machine, whose size is the upload's offset. The protocol
is in ``api/uploads``; complete files go to ``submit``.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import accounts
from collidium.challenges import arrivals
from collidium.database import transactional
from collidium.errors import InvalidInput, NotFound, TooLarge, TooManyRequests, Unavailable, Unreachable
from collidium.files.data_directory import partial_uploads
from collidium.files.durable import sha256_of
from collidium.files.held import GrowingFile, durable_size, scratch_directory
from collidium.hub.client import transfer_seconds
from collidium.runtime.waiting import in_thread
from collidium.submissions.models import Upload as Upload  # which the API names
from collidium.submissions.submit import Predictions, validated_links

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.hub.reader import HubReader
    from collidium.settings import Settings
    from collidium.submissions.admissions import Admission

#: How long an upload can be resumed.
AGE: Final = timedelta(days=1)
_UPLOAD_ID: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = r"[A-Za-z0-9][\w.-]*"
SOURCE: Final = re.compile(rf"({_NAME}/{_NAME}):([^\x00]+)@([\w./-]+)", re.ASCII)


@transactional
async def begin(
    admission: Admission, sha256: str, size_bytes: int, model_repo: str | None, maximum: int
) -> Upload:
    """Begin an upload of a file, or return the account's incomplete upload of the same file.

    Raises TooLarge, and TooManyRequests if the account has ``maximum`` other incomplete uploads.
    """
    if size_bytes > admission.largest_file:
        raise TooLarge(
            f"the file is larger than {admission.largest_file:,} bytes, the maximum here",
            headers={"Upload-Limit": f"max-size={admission.largest_file}"},
        )
    account, challenge, moment = admission.account.id, admission.challenge.name, now()
    await accounts.lock([account])
    own = await Upload.filter(account_id=account, submission_id__isnull=True, expires_at__gt=moment)
    for row in own:
        if (row.challenge, row.sha256, row.size_bytes) == (challenge, sha256, size_bytes):
            row.model_repo = model_repo
            await row.save(update_fields=["model_repo"])
            return row
    if len(own) >= maximum:
        wait = min(row.expires_at for row in own) - moment
        names = ", ".join(f"{row.id} ({row.challenge})" for row in own)
        raise TooManyRequests(
            f"{maximum} uploads of this account are not complete; complete one, or cancel it "
            f"(DELETE /v1/uploads/ID): {names}",
            retry_after=int(wait.total_seconds()) + 1,
        )
    row = Upload(
        id=uuid.uuid4().hex,
        account_id=account,
        challenge=challenge,
        sha256=sha256,
        size_bytes=size_bytes,
        model_repo=model_repo,
        began_at=moment,
        expires_at=moment + AGE,
    )
    await row.save(force_create=True)
    # The end of the challenge waits for it during the grace period.
    await arrivals.begin(row.id, challenge, row.expires_at)
    return row


async def find(account: AccountView, upload_id: str) -> Upload:
    """The upload of an account; raises NotFound."""
    row = None
    if _UPLOAD_ID.fullmatch(upload_id):
        row = await Upload.get_or_none(id=upload_id, account_id=account.id, expires_at__gt=now())
    if row is None:
        raise NotFound(
            f"there is no upload {upload_id[:100]!r}: it was cancelled or rejected, or has expired; "
            "send the file again"
        )
    return row


def path_of(settings: Settings, upload: Upload) -> Path:
    """The file of an upload."""
    return partial_uploads(settings) / upload.id


@asynccontextmanager
async def opened(settings: Settings, upload: Upload) -> AsyncIterator[GrowingFile | None]:
    """The file of an upload, locked for this request; None while another request has it.

    None, too, if another request has completed or cancelled the upload since it was looked up.
    """
    file = await asyncio.to_thread(GrowingFile.open, path_of(settings, upload))
    try:
        if file and not await Upload.exists(id=upload.id, submission_id__isnull=True):
            file.path.unlink(missing_ok=True)
            yield None
        else:
            yield file
    finally:
        if file:  # shielded against a second cancellation; see receive_to_file
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, file.let_go))


async def offset_of(settings: Settings, upload: Upload) -> int:
    """The number of bytes of an upload that are durable."""
    if upload.submission_id is not None:
        return int(upload.size_bytes)
    return await asyncio.to_thread(durable_size, path_of(settings, upload))


async def complete(settings: Settings, upload: Upload, submission_id: str) -> None:
    """Record the submission of an upload until it expires, and delete its file."""
    await Upload.filter(id=upload.id).update(submission_id=submission_id)
    await _delete(settings, upload)


async def discard(settings: Settings, upload: Upload) -> None:
    """Delete an upload."""
    await Upload.filter(id=upload.id).delete()
    await _delete(settings, upload)


async def _delete(settings: Settings, upload: Upload) -> None:
    await arrivals.end(upload.id)
    await asyncio.to_thread(path_of(settings, upload).unlink, missing_ok=True)


async def prune(moment: datetime) -> None:
    """Delete expired uploads; their files are swept by age."""
    await Upload.filter(expires_at__lt=moment).delete()


def require_valid(source: str, model_repo: str | None) -> None:
    """Raise InvalidInput with all problems of a source and of the repository of its model."""
    problems = [] if SOURCE.fullmatch(source) else _unknown_source(source).errors
    try:
        validated_links({"model_repo": model_repo})
    except InvalidInput as error:
        problems += error.errors
    InvalidInput.raise_for(problems)


def _unknown_source(source: str) -> InvalidInput:
    detail = f"it is written NAMESPACE/NAME:PATH@COMMIT, not {source[:200]!r}"
    return InvalidInput(detail, errors=[{"field": "source", "detail": detail}])


@asynccontextmanager
async def downloaded(
    settings: Settings, token: str | None, source: str, limit: int
) -> AsyncIterator[Predictions]:
    """Download ``NAMESPACE/NAME:PATH@COMMIT``, for the duration of the context.

    A branch or tag is resolved to its commit. Raises InvalidInput; NotFound, Unauthenticated and Forbidden by
    the hub's response to this token; TooLarge past ``limit`` bytes; UnusableDataset for a damaged file;
    Unavailable and UpstreamError.
    """
    found = SOURCE.fullmatch(source)
    if found is None:
        raise _unknown_source(source)
    from collidium.hub.reader import HubReader

    hub = HubReader(settings.hub, token, connections=2)
    try:
        async with scratch_directory(settings.uploads) as scratch:
            work = partial(_download_from_hub, hub, found[1], found[2], found[3], limit, scratch)
            try:
                async with asyncio.timeout(transfer_seconds(limit)):
                    predictions = await in_thread(work, "hub")
            except TimeoutError:
                raise Unavailable(f"the hub {settings.hub} is too slow; try again later") from None
            yield predictions
    finally:
        hub.stopped.set()


def _download_from_hub(
    hub: HubReader, repo: str, path: str, revision: str, limit: int, directory: Path
) -> Predictions:
    from collidium.hub.download_store import DownloadStore
    from collidium.hub.downloads import NoRoom, download_missing
    from collidium.hub.repository import Repository
    from collidium.hub.sources import HubDataset

    try:
        with hub:
            place = HubDataset(repo, hub.endpoint, revision)
            repository = Repository.read(hub, place, is_wanted=lambda _: False)
            file = repository.find(hub, path)
            if file is None:
                raise NotFound(f"{repo} has no file {path} at {revision}")
            if file.size > limit:
                raise TooLarge(f"{path} is larger than {limit:,} bytes, the maximum here")
            store = DownloadStore(directory, directory / ".download")
            download_missing(hub, repository, store, [file])
    except (Unreachable, NoRoom) as error:
        raise Unavailable(error.detail) from error
    there = store.path(file)
    sha256 = file.digest if len(file.digest) == 64 else sha256_of(there)
    return Predictions(there, sha256, file.size, f"{repo}:{path}@{repository.commit}")
