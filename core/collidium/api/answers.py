"""Responses: JSON, pages of a list with the address of the next page in the Link header, and stored files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, Field
from quart import Response, request
from quart.wrappers.response import FileBody
from werkzeug.exceptions import RequestedRangeNotSatisfiable
from werkzeug.http import parse_range_header

from collidium.contracts.storage import MissingFile, Storage
from collidium.errors import NotFound, UnknownCursor
from collidium.files.held import scratch_directory
from collidium.files.stored import fetch
from collidium.records import Record, encode
from collidium.settings import MEBIBYTE

R = TypeVar("R", bound=Record)

JSON = "application/json"

#: Ids are signed 64-bit numbers in the database.
LARGEST_ID = 2**63 - 1
CHUNK_BYTES: Final = MEBIBYTE


class PageQuery(BaseModel):
    """Query of a list."""

    limit: int = Field(100, ge=1, le=1000, description="Most items returned.")
    cursor: str | None = Field(None, max_length=512, description="Where to continue: from the Link header.")


def id_cursor(page: PageQuery) -> int | None:
    """The id before which the page starts; raises UnknownCursor."""
    if page.cursor is None:
        return None
    if not (page.cursor.isascii() and page.cursor.isdecimal() and int(page.cursor) <= LARGEST_ID):
        raise UnknownCursor
    return int(page.cursor)


def answer(record: Record, status: int = 200) -> Response:
    """Return one record as JSON."""
    return Response(encode(record), status=status, content_type=JSON)


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """Records as JSON, and the Link to the next page if there is one."""

    body: bytes
    link: str | None = None

    def response(self) -> Response:
        """Return the page as a response."""
        response = Response(self.body, content_type=JSON)
        if self.link is not None:
            response.headers["Link"] = self.link
        return response


def page_of(records: Sequence[Record], page: PageQuery, next_cursor: str | int | None) -> WrittenPage:
    """Encode a page of the list at this request's path."""
    link = None
    if next_cursor is not None:
        # With the other parameters of the query: the next page is of the same list.
        query = urlencode({**page.model_dump(exclude_none=True), "cursor": next_cursor})
        link = f'<{request.path}?{query}>; rel="next"'
    return WrittenPage(encode(records), link)


def answer_list(records: Sequence[Record]) -> Response:
    """Return all records as JSON."""
    return Response(encode(records), content_type=JSON)


def answer_page(found: Sequence[R], page: PageQuery, cursor_of: Callable[[R], str | int]) -> Response:
    """Return the first ``page.limit`` of up to ``page.limit + 1`` records, with a Link if there are more."""
    records = found[: page.limit]
    return page_of(records, page, cursor_of(records[-1]) if len(found) > page.limit else None).response()


def answer_stream(events: AsyncIterator[bytes]) -> Response:
    """Return server-sent events, which no cache may store and no proxy may buffer."""
    response = Response(events, content_type="text/event-stream")
    response.headers.update({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
    return response


async def answer_with_file(
    storage: Storage, key: str, sha256: str, scratch: Path, media_type: str
) -> Response:
    """Return the stored file or a range of it as a download, from a compared copy below ``scratch``.

    Raises NotFound, and StorageUnavailable if it is another file than was stored.
    """
    async with scratch_directory(scratch) as directory:
        copy = directory / "file"
        try:
            await fetch(storage, key, copy, sha256)
        except MissingFile:
            raise NotFound("the file is not kept any more") from None
        body = OpenedFile(copy, buffer_size=CHUNK_BYTES)
        response = Response(body, content_type=media_type)
        response.content_length = body.size
        response.set_etag(sha256)
        response.headers["Accept-Ranges"] = "bytes"
        response.headers.set("Content-Disposition", "attachment", filename=key.rpartition("/")[2])
        wanted = requested_range(f'"{sha256}"', body.size)
        if wanted is None:
            await response.make_conditional(request)
        else:
            await _narrow(response, body, wanted)
        if response.response is body:
            # The directory is deleted here; the file exists until it is closed or its process is killed.
            await body.open()
    return response


def requested_range(etag: str, size: int) -> range | None:
    """The requested range of bytes, which may be empty (RFC 9110, section 14); None for the whole file.

    Unknown units and several ranges are ignored, as the standard allows.
    """
    header = request.headers.get("Range") if request.headers.get("If-Range") in {None, etag} else None
    parsed = parse_range_header(header)
    if parsed is None or parsed.units != "bytes" or len(parsed.ranges) != 1:
        return None
    start, stop = parsed.ranges[0]
    return range(max(0, size + start) if start < 0 else start, size if stop is None else min(stop, size))


async def _narrow(response: Response, body: FileBody, wanted: range) -> None:
    """Make the response that of a range. Raises RequestedRangeNotSatisfiable for an empty one."""
    if not wanted:
        raise RequestedRangeNotSatisfiable(body.size)
    await body.make_conditional(wanted.start, wanted.stop)
    response.status_code = HTTPStatus.PARTIAL_CONTENT
    response.content_length = len(wanted)
    response.headers["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{body.size}"


class OpenedFile(FileBody):
    """A file as a body, which can be opened before the response begins: then the error is its status."""

    async def open(self) -> None:
        """Open the file. Raises OSError."""
        if self.file is None:
            await super().__aenter__()

    async def __aenter__(self) -> OpenedFile:
        await self.open()
        return self
