"""Every error the platform raises on purpose, with its HTTP status and its exit code.

::

    CollidiumError                500  exit 1
    ├── InvalidInput              422  exit 3   all problems at once, in ``errors``
    │   ├── BadRequest            400
    │   ├── TooLarge              413
    │   ├── UnknownCursor         422
    │   └── UnsupportedMediaType  415
    ├── Unauthenticated           401  exit 3
    ├── PaymentRequired           402  exit 3
    ├── Forbidden                 403  exit 3
    ├── NotFound                  404  exit 3
    ├── MethodNotAllowed          405  exit 3
    ├── Conflict                  409  exit 3
    ├── TooManyRequests           429  exit 3
    ├── UpstreamError             502  exit 3   the hub or a runner answered wrongly
    ├── Unavailable               503  exit 3   frozen, or something needed is down
    │   └── ScoringFailed         503  exit 3   the task failed, not the predictions
    ├── UnusableDataset           422  exit 1   shards that are missing, or that contradict themselves
    ├── ConfigurationError        500  exit 1   settings, plugins, schema: the operator mends it
    └── Unreachable               ---  exit 4   the client cannot reach the server

Raised low, rendered once: by the API as a problem document (RFC 9457), by the command as one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class CollidiumError(Exception):
    """The platform could not do what was asked."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        #: Which request it was, in the server's logs; known to clients.
        self.request_id: str | None = None
        #: Under which a client may safely repeat the request, where it does not know whether that was done.
        self.idempotency_key: str | None = None


class RefusedError(CollidiumError):
    """The server refuses what was asked."""

    exit_code = 3


class InvalidInput(RefusedError):
    """What was sent cannot be taken."""

    status = 422
    title = "Invalid input"

    def __str__(self) -> str:
        """The message with the first problem: what a traceback shows is often all that a caller sees."""
        if not self.errors:
            return self.detail
        first = self.errors[0]
        places = [str(first[key]) for key in ("field", "column") if first.get(key) is not None]
        problem = ": ".join([*places, str(first.get("detail", ""))])
        text = self.detail if problem in self.detail else f"{self.detail}: {problem}"
        more = len(self.errors) - 1
        return f"{text} (and {more} more in .errors)" if more else text


class BadRequest(InvalidInput):
    """The request cannot be read."""

    status = 400
    title = "Bad request"


class TooLarge(InvalidInput):
    """The body is larger than allowed."""

    status = 413
    title = "Too large"


class UnknownCursor(InvalidInput):
    """A page was asked for by a cursor that belongs to no list of this kind."""

    def __init__(self, detail: str = "cursor: not one that this server gave out; begin without it") -> None:
        super().__init__(detail, errors=[{"field": "cursor", "detail": "not a cursor of this list"}])


class UnsupportedMediaType(InvalidInput):
    """The body is of a kind that is not taken here."""

    status = 415
    title = "Unsupported media type"


class Unauthenticated(RefusedError):
    """No token, or one that is not valid."""

    status = 401
    title = "Not signed in"

    def __init__(self, detail: str, *, challenge: str = "Bearer") -> None:
        super().__init__(detail, headers={"WWW-Authenticate": challenge})


class PaymentRequired(RefusedError):
    """The balance does not cover the cost."""

    status = 402
    title = "Not enough credits"


class Forbidden(RefusedError):
    """The account may not do this."""

    status = 403
    title = "Forbidden"


class NotFound(RefusedError):
    """There is no such thing, or none that the caller may see."""

    status = 404
    title = "Not found"


class MethodNotAllowed(RefusedError):
    """The path exists, but not for this method."""

    status = 405
    title = "Method not allowed"


class Conflict(RefusedError):
    """What was asked contradicts what is."""

    status = 409
    title = "Conflict"


class TooManyRequests(RefusedError):
    """Asked too often."""

    status = 429
    title = "Too many requests"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class UpstreamError(RefusedError):
    """The hub or a runner answered wrongly."""

    status = 502
    title = "Upstream error"


class Unavailable(RefusedError):
    """Not now: the platform is frozen, or something it needs is down."""

    status = 503
    title = "Unavailable"

    def __init__(self, detail: str, *, retry_after: int = 10) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class ScoringFailed(Unavailable):
    """The scoring itself went wrong: the fault of the task or the machine, not of what was sent."""

    title = "Scoring failed"


class UnusableDataset(CollidiumError):
    """The dataset lacks something needed, or contradicts itself."""

    status = 422
    title = "Unusable dataset"


class ConfigurationError(CollidiumError):
    """Settings, plugins or the database schema are wrong; an operator must mend them."""

    title = "Configuration error"


class Unreachable(CollidiumError):
    """The server cannot be reached."""

    title = "Unreachable"
    exit_code = 4
