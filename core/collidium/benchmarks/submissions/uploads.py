"""Uploads in several requests: who announced which file, and how much of it is there.

A row says what an account may append to; the bytes are in a file of this machine, whose size is the upload's
offset. ``api/uploads`` has the protocol, ``submitting`` what becomes of the file.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import accounts
from collidium.benchmarks.models import Arrival, Upload
from collidium.database import transactional
from collidium.errors import NotFound, TooLarge, TooManyRequests
from collidium.files.data_directory import partial_uploads
from collidium.files.held import GrowingFile, durable_size

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.benchmarks.submissions.admissions import Admission
    from collidium.settings import Settings

__all__ = ["AGE", "Upload", "begin", "complete", "discard", "find", "offset_of", "opened", "path_of", "prune"]

#: How long an upload can be resumed after it began.
AGE: Final = timedelta(days=1)
_UPLOAD_ID: Final = re.compile(r"[0-9a-f]{32}")


@transactional
async def begin(
    admission: Admission, sha256: str, size_bytes: int, model_repo: str | None, maximum: int
) -> Upload:
    """Open an upload of a file, or find the one that the account has opened for it.

    Raises TooLarge, and TooManyRequests where the account has ``maximum`` others that are not complete.
    """
    if size_bytes > admission.largest_file:
        raise TooLarge(
            f"the file is larger than {admission.largest_file:,} bytes, the most that is taken here",
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
    # The end of the challenge waits for it, until the grace is over.
    await Arrival(id=row.id, challenge=challenge, leased_until=row.expires_at).save(force_create=True)
    return row


async def find(account: AccountView, upload_id: str) -> Upload:
    """The upload of that account; raises NotFound."""
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
    """Where the bytes of an upload are."""
    return partial_uploads(settings) / upload.id


@asynccontextmanager
async def opened(settings: Settings, upload: Upload) -> AsyncIterator[GrowingFile | None]:
    """The file of an upload, held by this request alone; None while another holds it.

    None, too, where another has completed or cancelled it since it was looked up: a file that is made then
    would belong to nothing.
    """
    file = await asyncio.to_thread(GrowingFile.open, path_of(settings, upload))
    try:
        if file and not await Upload.exists(id=upload.id, submission_id__isnull=True):
            file.path.unlink(missing_ok=True)
            yield None
        else:
            yield file
    finally:
        if file:  # also where the request is cancelled twice; see receive_to_file
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, file.let_go))


async def offset_of(settings: Settings, upload: Upload) -> int:
    """How many bytes of an upload are there and survive a power cut."""
    if upload.submission_id is not None:
        return int(upload.size_bytes)
    return await asyncio.to_thread(durable_size, path_of(settings, upload))


async def complete(settings: Settings, upload: Upload, submission_id: str) -> None:
    """Remember what became of an upload until it expires, and delete its file."""
    await Upload.filter(id=upload.id).update(submission_id=submission_id)
    await _delete(settings, upload)


async def discard(settings: Settings, upload: Upload) -> None:
    """Delete an upload."""
    await Upload.filter(id=upload.id).delete()
    await _delete(settings, upload)


async def _delete(settings: Settings, upload: Upload) -> None:
    await Arrival.filter(id=upload.id).delete()
    await asyncio.to_thread(path_of(settings, upload).unlink, missing_ok=True)


async def prune(moment: datetime) -> None:
    """Forget uploads that have expired; their files are swept by their age."""
    await Upload.filter(expires_at__lt=moment).delete()
