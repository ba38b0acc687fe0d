"""Sends a file so that a connection that breaks goes on where it stopped.

By draft-ietf-httpbis-resumable-upload-12. The server finds an upload by the file's checksum, so another
process that sends the same file goes on, too.
"""

from __future__ import annotations

import hashlib
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from collidium.client.answers import Answer, upload_offset
from collidium.client.calls.call import Call
from collidium.client.uploads import Upload, UploadAbandoned
from collidium.client.waiting import Waiting
from collidium.errors import CollidiumError, Conflict, Unavailable, Unreachable, UpstreamError

Result = TypeVar("Result")


class Exchange(Protocol):
    """Sends one request and reads its answer."""

    def __call__(self, call: Call[Any], upload: Upload | None = None, /) -> Any: ...


def send_resumably(
    exchange: Exchange, call: Call[Result], address: Callable[[Answer], str], upload: Upload
) -> Result:
    """The result of a call that sends a file, in as many requests as it takes.

    ``address`` reads where they go. Raises what the call does, and what went wrong where for five minutes
    nothing arrives.
    """
    where = exchange(_beginning(call, address, upload))
    asking = Call("GET", where, upload_offset)  # not HEAD: errors have bodies
    waiting = Waiting(None, None)
    while True:
        try:
            offset = exchange(asking)
            if offset > upload.offset:
                waiting = Waiting(None, None)
            upload.offset = offset
            headers = {
                "Content-Type": "application/partial-upload",
                "Upload-Complete": "?1",
                "Upload-Offset": str(offset),
            }
            result: Result = exchange(
                replace(call, method="PATCH", path=where, query={}, headers=headers), upload
            )
            return result
        except (Conflict, Unavailable, Unreachable, UpstreamError) as trouble:
            if not _passes(trouble):
                raise
            time.sleep(waiting.pause_after(trouble))
            if upload.abandoned:
                raise UploadAbandoned from trouble


def _beginning(call: Call[Any], address: Callable[[Answer], str], upload: Upload) -> Call[str]:
    digest = b64encode(hashlib.file_digest(upload.file, "sha256").digest()).decode()
    headers = {
        "Upload-Complete": "?0",
        "Upload-Length": str(upload.size),
        "Repr-Digest": f"sha-256=:{digest}:",
    }
    return Call(call.method, call.path, address, query=call.query, headers=headers)


def _passes(trouble: CollidiumError) -> bool:
    """Whether another request may go on: nothing was answered about the file itself."""
    if trouble.headers.get("Upload-Complete") == "?1":
        return False
    return not isinstance(trouble, Conflict) or "Upload-Offset" in trouble.headers
