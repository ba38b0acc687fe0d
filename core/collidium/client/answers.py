"""Reads answers: records when all went well, the platform's own errors when not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from collidium import errors
from collidium.records import Page, Readiness

Result = TypeVar("Result")

PROBLEM = "application/problem+json"

_NO_JSON = (msgspec.DecodeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, before anything is made of it."""

    backend: str
    status: int
    #: Names in lower case.
    headers: Mapping[str, str]
    content: bytes
    #: Target of the Link header with rel=next.
    next_link: str | None = None

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


# -- what calls make of an answer ---------------------------------------------------------------------


def single(kind: type[Result]) -> Callable[[Answer], Result]:
    """Reads an answer that is one record."""

    def read(answer: Answer) -> Result:
        return _decode(_success(answer), kind)

    return read


def listed(kind: type[Result]) -> Callable[[Answer], Page[Result]]:
    """Reads an answer that is one page of a list."""

    def read(answer: Answer) -> Page[Result]:
        records: tuple[Result, ...] = _decode(_success(answer), tuple[kind, ...])  # type: ignore[valid-type]  # the kind is a value
        return Page(records, _next_cursor(answer), answer.headers.get("x-warning", ""))

    return read


def content(answer: Answer) -> bytes:
    """Reads an answer that is a file."""
    return _success(answer).content


def upload_address(answer: Answer) -> str:
    """Reads an answer that opened an upload: its address on this server."""
    location = _success(answer).headers.get("location", "")
    if not location.startswith("/v1/uploads/"):
        not_ours(answer)
    return location


def upload_offset(answer: Answer) -> int:
    """Reads how much of an upload the server has; empty answers have no other shape."""
    offset = _success(answer).headers.get("upload-offset", "")
    if not (offset.isascii() and offset.isdecimal()):
        not_ours(answer)
    return int(offset)


def readiness(answer: Answer) -> Readiness:
    """Reads a readiness answer, which is data also when its status is 503."""
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and answer.media_type == "application/json":
        return _decode(answer, Readiness)
    return single(Readiness)(answer)


def _success(answer: Answer) -> Answer:
    if answer.status // 100 != 2:
        raise_problem(answer)
    return answer


def _decode(answer: Answer, kind: type[Result]) -> Result:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.ValidationError as error:
        raise errors.UpstreamError(
            f"{answer.backend} answered something this version of collidium does not understand: {error}"
        ) from None
    except _NO_JSON:
        not_ours(answer)


def _next_cursor(answer: Answer) -> str | None:
    if answer.next_link is None:
        return None
    try:
        query = urlsplit(answer.next_link).query
    except ValueError:  # no address at all
        not_ours(answer)
    return next(iter(parse_qs(query).get("cursor", [])), None)


# -- errors -------------------------------------------------------------------------------------------


def raise_problem(answer: Answer) -> NoReturn:
    """Raise the error that the server reported as a problem document."""
    if answer.media_type != PROBLEM:
        not_ours(answer)
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
    except _NO_JSON:
        not_ours(answer)
    detail = problem.get("detail") or problem.get("title") or f"the server answered {answer.status}"
    listed_errors = problem.get("errors")
    items = (
        [item for item in listed_errors if isinstance(item, dict)] if isinstance(listed_errors, list) else []
    )
    request_id = problem.get("request_id") or answer.headers.get("x-request-id")
    raise received(answer.status, str(detail), items, answer.headers, request_id and str(request_id))


def not_ours(answer: Answer) -> NoReturn:
    """Raise for an answer that no Collidium server gives: a proxy's page, another server."""
    location = answer.headers.get("location")
    if answer.status // 100 == 3 and location:
        detail = f"{answer.backend} redirects elsewhere; set PLATFORM_BACKEND to the server's own address"
    else:
        kind = answer.media_type or "no content type"
        detail = (
            f"{answer.backend} answered {_phrase(answer.status)} ({kind}), which is not an answer of a "
            "Collidium server: check PLATFORM_BACKEND and any proxy on the way"
        )
    error = received(answer.status, detail, [], answer.headers, answer.headers.get("x-request-id"))
    raise error if answer.status >= 400 else errors.UpstreamError(detail)


def received(
    code: int,
    detail: str,
    items: list[dict[str, Any]],
    headers: Mapping[str, str],
    request_id: str | None,
) -> errors.CollidiumError:
    """The error that has this status on the server's side."""
    kind = _kinds().get(code) or (errors.UpstreamError if code >= 500 else errors.RefusedError)
    # Not kind(…): 401, 429 and 503 take what a server decides there; a client only repeats it.
    error = kind.__new__(kind)
    errors.CollidiumError.__init__(error, detail, errors=items, headers=_error_headers(headers))
    error.request_id = request_id
    return error


def _kinds() -> dict[int, type[errors.CollidiumError]]:
    return {kind.status: kind for kind in _subclasses(errors.RefusedError) if "status" in vars(kind)} | {
        500: errors.CollidiumError
    }


def _subclasses(kind: type[errors.CollidiumError]) -> Iterator[type[errors.CollidiumError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _error_headers(headers: Mapping[str, str]) -> dict[str, str]:
    known = ("Retry-After", "Upload-Complete", "Upload-Offset", "WWW-Authenticate")
    names = {name.lower(): name for name in known}
    return {names[name]: value for name, value in headers.items() if name in names}


def _phrase(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)
