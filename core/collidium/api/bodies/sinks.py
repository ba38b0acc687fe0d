"""Where the bytes of a body go: straight into a file, or through a form of which one part is the file.

Called in threads, never on the event loop.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.sansio import multipart

from collidium.errors import BadRequest, TooLarge
from collidium.files.held import HeldFile

#: Most bytes of all the small fields together, and most parts of a form.
FIELDS_BYTES: Final = 64 * 1024
FORM_PARTS: Final = 64
#: Bytes that a form may have beyond its file: fields, headers and boundaries.
FORM_OVERHEAD: Final = 1024 * 1024

_PAUSES: Final = (multipart.NeedData, multipart.Epilogue)


class Sink(Protocol):
    """Takes a body batch by batch."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> dict[str, str]:
        """The body is whole; returns the small fields that came with the file."""
        ...


class RawSink:
    """The body is the file."""

    def __init__(self, file: HeldFile, limit: int) -> None:
        self._file = file
        self._limit = limit

    def feed(self, data: bytes) -> None:
        self._file.write(data, self._limit)

    def finish(self) -> dict[str, str]:
        return {}


class FormSink:
    """The file is the part of that name of a multipart form; parts named in ``texts`` may be files, too."""

    def __init__(
        self, file: HeldFile, limit: int, part: str, boundary: str, batch: int, texts: Collection[str] = ()
    ) -> None:
        self._file = file
        self._limit = limit
        self._part = part
        self._texts = texts
        self._decoder = multipart.MultipartDecoder(
            boundary.encode("latin-1", "replace"),
            # What the decoder may keep between batches is one batch at most: more means endless headers.
            max_form_memory_size=2 * batch + FIELDS_BYTES,
            max_parts=FORM_PARTS,
        )
        self._fields: dict[str, bytearray] = {}
        self._field_bytes = 0
        #: The part being read; None stands for the file.
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
            raise BadRequest(f"the form has a file {event.name!r}; the only one taken is {self._part!r}")
        else:
            self._current = self._fields[event.name] = bytearray()
