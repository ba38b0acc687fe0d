"""Stream the file of a request to disk: a raw body, or one part of a multipart form.

Sinks run in threads, not on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, cast

import quart
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.sansio import multipart

from collidium.api.bodies.body import RequestBody
from collidium.errors import BadRequest, TooLarge, UnsupportedMediaType
from collidium.files.held import GrowingFile, HeldFile

#: Bytes that are collected before a thread hashes and writes them, because each call of a thread is costly.
BATCH: Final = 2 * 1024 * 1024
#: The same for resumable uploads, which lose up to this many bytes if the connection breaks.
PARTIAL_BATCH: Final = 256 * 1024

FORM: Final = "multipart/form-data"
#: Media type of requests that append to an upload.
PARTIAL: Final = "application/partial-upload"
#: Accepted media types of a raw file.
FILE_TYPES: Final = frozenset({"", "application/octet-stream", "application/vnd.apache.parquet"})

#: Maximum bytes of all fields together, and maximum number of parts of a form.
FIELDS_BYTES: Final = 64 * 1024
FORM_PARTS: Final = 64
#: Maximum bytes of a form in addition to its file: fields, headers and boundaries.
FORM_OVERHEAD: Final = 1024 * 1024

_PAUSES: Final = (multipart.NeedData, multipart.Epilogue)


class Sink(Protocol):
    """Consumes a body in batches."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> dict[str, str]:
        """End the body; return the form's other fields."""
        ...


class RawSink:
    """Writes the whole body to the file."""

    def __init__(self, file: HeldFile, limit: int) -> None:
        self._file = file
        self._limit = limit

    def feed(self, data: bytes) -> None:
        self._file.write(data, self._limit)

    def finish(self) -> dict[str, str]:
        return {}


class FormSink:
    """Writes one part of a multipart form to the file, and collects the other fields.

    Parts named in ``texts`` may be sent as files, too.
    """

    def __init__(
        self, file: HeldFile, limit: int, part: str, boundary: str, texts: Collection[str] = ()
    ) -> None:
        self._file = file
        self._limit = limit
        self._part = part
        self._texts = texts
        self._decoder = multipart.MultipartDecoder(
            boundary.encode("latin-1", "replace"),
            # The decoder buffers at most one batch, unless headers are endless.
            max_form_memory_size=2 * BATCH + FIELDS_BYTES,
            max_parts=FORM_PARTS,
        )
        self._fields: dict[str, bytearray] = {}
        self._field_bytes = 0
        #: The current field; None for the file.
        self._current: bytearray | None = None
        self._found = False

    def feed(self, data: bytes | None) -> None:
        try:
            self._decoder.receive_data(data)
            while not isinstance(event := self._decoder.next_event(), _PAUSES):
                self._take(event)
        except RequestEntityTooLarge:
            raise TooLarge(f"the form has headers too long or more than {FORM_PARTS} parts") from None
        except ValueError as error:
            raise BadRequest(f"the form cannot be read: {error}") from None

    def finish(self) -> dict[str, str]:
        self.feed(None)
        if not self._found:
            raise BadRequest(f"the form has no part named {self._part!r}")
        try:
            return {name: value.decode() for name, value in self._fields.items()}
        except UnicodeDecodeError:
            raise BadRequest("a form field is not UTF-8") from None

    def _take(self, event: multipart.Event) -> None:
        if isinstance(event, (multipart.File, multipart.Field)):
            self._begin(event)
        elif isinstance(event, multipart.Data) and self._current is None:
            self._file.write(event.data, self._limit)
        elif isinstance(event, multipart.Data) and self._current is not None:
            self._field_bytes += len(event.data)
            if self._field_bytes > FIELDS_BYTES:
                raise TooLarge(f"the form's fields are larger than {FIELDS_BYTES:,} bytes")
            self._current += event.data

    def _begin(self, event: multipart.File | multipart.Field) -> None:
        if not event.name:
            raise BadRequest("a part of the form has no name")
        if event.name in self._fields or (event.name == self._part and self._found):
            raise BadRequest(f"the form has two parts named {event.name!r}")
        if event.name == self._part:
            self._found = True
            self._current = None
        elif isinstance(event, multipart.File) and event.name not in self._texts:
            raise BadRequest(f"the form has a file {event.name!r}; the only one accepted is {self._part!r}")
        else:
            self._current = self._fields[event.name] = bytearray()


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A received file; it is deleted when its context ends, unless it is moved."""

    path: Path
    sha256: str
    size_bytes: int
    #: The other fields of the form.
    fields: dict[str, str]
    _file: HeldFile = field(repr=False)

    async def move_to(self, destination: Path) -> None:
        """Move the file to ``destination`` on the same file system and sync it; replaces an existing file."""
        await asyncio.to_thread(self._file.move_to, destination)


@asynccontextmanager
async def receive_to_file(
    request: quart.Request,
    directory: Path,
    limit_bytes: int,
    *,
    part: str | None = "predictions",
    media_types: Collection[str] | None = FILE_TYPES,
    texts: Collection[str] = (),
) -> AsyncIterator[ReceivedFile]:
    """Stream the request's file into ``directory`` and hash it.

    The file is the raw body, with one of ``media_types`` (None: any), or the part named ``part`` of a form
    (None: no forms). Parts in ``texts`` may be small files, too. Memory use is a few MiB. Nothing is left in
    ``directory`` unless the process is killed; :func:`~collidium.files.held.sweep` removes such files.

    Raises UnsupportedMediaType, TooLarge, BadRequest (a truncated or stalled body, a malformed form), and
    Unavailable if the disk is full.
    """
    is_form = part is not None and request.mimetype == FORM
    if not is_form:
        _check_media_type(request, media_types, part)
    _check_encoding(request)
    body = _limited_body(request, limit_bytes + (FORM_OVERHEAD if is_form else 0))
    file = HeldFile.create(directory)
    try:
        sink: Sink = RawSink(file, limit_bytes)
        if is_form and part is not None:
            sink = FormSink(file, limit_bytes, part, _boundary(request), texts)
        fields = await _feed(body, sink)
        yield ReceivedFile(file.path, file.sha256, file.size, fields, file)
    finally:
        # Also if the request is cancelled twice, by a disconnect and a shutdown.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, file.let_go))


async def append_to_file(request: quart.Request, file: GrowingFile, limit_bytes: int) -> None:
    """Append the request's body to ``file`` up to ``limit_bytes`` in total; a truncated body is kept.

    Raises as :func:`receive_to_file`.
    """
    _check_media_type(request, (PARTIAL,), None)
    _check_encoding(request)
    body = _limited_body(request, limit_bytes - file.size)
    await _feed(body, RawSink(file, limit_bytes), PARTIAL_BATCH)


def _limited_body(request: quart.Request, limit_bytes: int) -> RequestBody:
    body = cast(RequestBody, request.body)
    body.limit = limit_bytes
    body.check_limit()
    return body


async def _feed(body: RequestBody, sink: Sink, batch_bytes: int = BATCH) -> dict[str, str]:
    batch: list[bytes] = []
    size = 0
    async for chunk in body:
        batch.append(chunk)
        size += len(chunk)
        if size >= batch_bytes:
            await asyncio.to_thread(sink.feed, b"".join(batch))
            batch.clear()
            size = 0
    await asyncio.to_thread(sink.feed, b"".join(batch))
    return await asyncio.to_thread(sink.finish)


def _check_media_type(request: quart.Request, media_types: Collection[str] | None, part: str | None) -> None:
    if media_types is not None and request.mimetype not in media_types:
        wanted = " or ".join(sorted(filter(None, media_types)))
        form = f", or a form ({FORM}) with a part named {part!r}" if part else ""
        raise UnsupportedMediaType(f"the body is {request.mimetype!r}; send the bytes as {wanted}{form}")


def _check_encoding(request: quart.Request) -> None:
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise UnsupportedMediaType(
            f"a body with Content-Encoding {encoding!r} is not accepted; send it without encoding"
        )


def _boundary(request: quart.Request) -> str:
    boundary = request.mimetype_params.get("boundary", "")
    if not 1 <= len(boundary) <= 200:
        raise BadRequest("the form's Content-Type has no usable boundary")
    return boundary
