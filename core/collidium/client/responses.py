"""Read responses: records on success, the platform's exceptions otherwise."""

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
class Response:
    """An HTTP response before it is decoded."""

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


# -- readers of responses -------------------------------------------------------------------------------


def single(kind: type[Result]) -> Callable[[Response], Result]:
    """Return a function that decodes one record."""

    def read(response: Response) -> Result:
        return _decode(_success(response), kind)

    return read


def listed(kind: type[Result]) -> Callable[[Response], Page[Result]]:
    """Return a function that decodes one page of a list."""

    def read(response: Response) -> Page[Result]:
        records: tuple[Result, ...] = _decode(_success(response), tuple[kind, ...])  # type: ignore[valid-type]  # the kind is a value
        return Page(records, _next_cursor(response), response.headers.get("x-warning", ""))

    return read


def returns(result: Result) -> Callable[[Response], Result]:
    """Return a function that returns ``result`` if the call succeeded."""

    def read(response: Response) -> Result:
        _success(response)
        return result

    return read


def content(response: Response) -> bytes:
    """Return the body of a download."""
    return _success(response).content


def upload_address(response: Response) -> str:
    """Return the address of the upload that the response created."""
    location = _success(response).headers.get("location", "")
    if not location.startswith("/v1/uploads/"):
        raise_foreign_response(response)
    return location


def upload_offset(response: Response) -> int:
    """Return the number of bytes that the server has of an upload; the response has no body."""
    offset = _success(response).headers.get("upload-offset", "")
    if not (offset.isascii() and offset.isdecimal()):
        raise_foreign_response(response)
    return int(offset)


def readiness(response: Response) -> Readiness:
    """Decode a readiness report, which also comes with status 503."""
    if response.status == HTTPStatus.SERVICE_UNAVAILABLE and response.media_type == "application/json":
        return _decode(response, Readiness)
    return single(Readiness)(response)


def _success(response: Response) -> Response:
    if response.status // 100 != 2:
        raise_problem(response)
    return response


def _decode(response: Response, kind: type[Result]) -> Result:
    try:
        return msgspec.json.decode(response.content, type=kind)
    except msgspec.ValidationError as error:
        raise errors.UpstreamError(
            f"{response.backend} answered something this version of collidium does not understand: {error}"
        ) from None
    except _NO_JSON:
        raise_foreign_response(response)


def _next_cursor(response: Response) -> str | None:
    if response.next_link is None:
        return None
    try:
        query = urlsplit(response.next_link).query
    except ValueError:  # no address at all
        raise_foreign_response(response)
    return next(iter(parse_qs(query).get("cursor", [])), None)


# -- errors -------------------------------------------------------------------------------------------


def raise_problem(response: Response) -> NoReturn:
    """Raise the exception that a problem document describes."""
    if response.media_type != PROBLEM:
        raise_foreign_response(response)
    try:
        problem = msgspec.json.decode(response.content, type=dict[str, Any])
    except _NO_JSON:
        raise_foreign_response(response)
    detail = problem.get("detail") or problem.get("title") or f"the server answered {response.status}"
    items = problem.get("errors")
    error = _error(response, str(detail))
    if isinstance(items, list):
        error.errors = list[Mapping[str, Any]](item for item in items if isinstance(item, dict))
    if request_id := problem.get("request_id"):
        error.request_id = str(request_id)
    raise error


def raise_foreign_response(response: Response) -> NoReturn:
    """Raise for a response that no Collidium server sends, for example a proxy's error page."""
    if response.status // 100 == 3 and response.headers.get("location"):
        detail = f"{response.backend} redirects elsewhere; set PLATFORM_BACKEND to the server's own address"
    else:
        kind = response.media_type or "no content type"
        detail = (
            f"{response.backend} answered {_phrase(response.status)} ({kind}), which is not an answer of a "
            "Collidium server: check PLATFORM_BACKEND and any proxy on the way"
        )
    raise _error(response, detail) if response.status >= 400 else errors.UpstreamError(detail)


def _error(response: Response, detail: str) -> errors.CollidiumError:
    """Return the exception with the status of the response."""
    code = response.status
    kind = _errors_by_status().get(code) or (errors.UpstreamError if code >= 500 else errors.RefusedError)
    # Not kind(...): the constructors of 401, 429 and 503 set headers, which here come from the server.
    error = kind.__new__(kind)
    errors.CollidiumError.__init__(error, detail, headers=_error_headers(response.headers))
    error.request_id = response.headers.get("x-request-id")
    return error


def _errors_by_status() -> dict[int, type[errors.CollidiumError]]:
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
