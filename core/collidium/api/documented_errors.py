"""The errors of each operation in the OpenAPI document: of its credentials, path and input, and its own.

Operations name their own with :func:`raises`. An error of the server itself, such as a database that does not
respond, is the default response of every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import cleandoc
from typing import Any, Final, TypeVar

from collidium.api.problems import MEDIA_TYPE
from collidium.errors import (
    BadRequest,
    CollidiumError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PaymentRequired,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UnsupportedMediaType,
    UpstreamError,
)

F = TypeVar("F", bound=Callable[..., Any])
ErrorType = type[CollidiumError]

_OWN: Final = "_collidium_errors"
_KINDS: Final[tuple[ErrorType, ...]] = (
    BadRequest,
    Unauthenticated,
    PaymentRequired,
    Forbidden,
    NotFound,
    Conflict,
    TooLarge,
    UnsupportedMediaType,
    InvalidInput,
    TooManyRequests,
    UpstreamError,
    Unavailable,
)
_CONTENT: Final = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def raises(*kinds: ErrorType) -> Callable[[F], F]:
    """Return a decorator that documents errors which do not follow from credentials, path and input."""

    def decorate(handler: F) -> F:
        setattr(handler, _OWN, kinds)
        return handler

    return decorate


def responses() -> dict[str, Any]:
    """Return the responses that operations refer to, by the name of the error."""
    return {
        kind.__name__: {"description": cleandoc(kind.__doc__ or ""), "content": _CONTENT} for kind in _KINDS
    }


def of_operation(operation: Mapping[str, Any], handler: Callable[..., Any]) -> dict[str, Any]:
    """Return the error responses of an operation of the document, by status."""
    kinds = {*_implied(operation), *getattr(handler, _OWN, ())}
    found = {
        str(kind.status): {"$ref": f"#/components/responses/{kind.__name__}"}
        for kind in sorted(kinds, key=lambda kind: kind.status)
    }
    return found | {"default": {"description": "What went wrong.", "content": _CONTENT}}


def _implied(operation: Mapping[str, Any]) -> Iterator[ErrorType]:
    """The errors that credentials, path and input of an operation can cause."""
    places = {parameter["in"] for parameter in operation.get("parameters", ())}
    credentials = {name for wanted in operation["security"] for name in wanted}
    bodies = operation.get("requestBody", {}).get("content", {})
    if credentials:
        yield from (BadRequest, Unauthenticated, Forbidden)
    if "hub_token" in credentials:
        yield TooManyRequests
    if "path" in places:
        yield NotFound
    if bodies:
        yield from (BadRequest, TooLarge)
    if bodies and "application/json" not in bodies:
        yield UnsupportedMediaType
    if bodies or places & {"query", "header"}:
        yield InvalidInput
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ())):
        yield Conflict
