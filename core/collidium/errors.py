"""All exceptions that the platform raises on purpose, with HTTP status and exit code.

::

    CollidiumError                500  exit 1
    ├── InvalidInput              422  exit 3   all problems at once, in ``errors``
    │   ├── BadRequest            400
    │   ├── TooLarge              413
    │   ├── Undecodable           422           reading it crashes, or exceeds the limits
    │   ├── UnknownCursor         422
    │   └── UnsupportedMediaType  415
    ├── Unauthenticated           401  exit 3
    ├── PaymentRequired           402  exit 3
    ├── Forbidden                 403  exit 3
    ├── NotFound                  404  exit 3
    ├── MethodNotAllowed          405  exit 3
    ├── Conflict                  409  exit 3
    ├── TooManyRequests           429  exit 3
    ├── UpstreamError             502  exit 3   invalid response of the hub or a runner
    ├── Unavailable               503  exit 3   frozen, or a dependency is down
    │   └── ScoringFailed         503  exit 3   a fault of the task or the machine, not of the predictions
    │       └── ScoringInterrupted  503  exit 3  processes were lost; a retry may succeed
    ├── UnusableDataset           422  exit 1   shards are missing or inconsistent
    ├── ConfigurationError        500  exit 1   settings, plugins or schema: for the operator to fix
    └── Unreachable               ---  exit 4   the client cannot reach the server

They are rendered in one place each: by the API as a problem document (RFC 9457), by the command as a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class CollidiumError(Exception):
    """Base of all exceptions that the platform raises on purpose."""

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
        #: Id of the request in the server's logs; set by clients.
        self.request_id: str | None = None
        #: Key with which a client can safely repeat a request whose outcome is unknown.
        self.idempotency_key: str | None = None


class RefusedError(CollidiumError):
    """The server rejected the request."""

    exit_code = 3


class InvalidInput(RefusedError):
    """The input is invalid."""

    status = 422
    title = "Invalid input"

    @classmethod
    def raise_for(cls, errors: Sequence[Mapping[str, Any]]) -> None:
        """Raise the error with all problems of fields, if there are any."""
        if errors:
            raise cls("; ".join(f"{error['field']}: {error['detail']}" for error in errors), errors=errors)

    def __str__(self) -> str:
        """The message with the first problem, for tracebacks."""
        if not self.errors:
            return self.detail
        first = self.errors[0]
        places = [str(first[key]) for key in ("field", "column") if first.get(key) is not None]
        problem = ": ".join([*places, str(first.get("detail", ""))])
        text = self.detail if problem in self.detail else f"{self.detail}: {problem}"
        more = len(self.errors) - 1
        return f"{text} (and {more} more in .errors)" if more else text


class Undecodable(InvalidInput):
    """Processes that read the file crash or exceed their limits, each time."""


class BadRequest(InvalidInput):
    """The request is malformed."""

    status = 400
    title = "Bad request"


class TooLarge(InvalidInput):
    """The body is larger than allowed."""

    status = 413
    title = "Too large"


class UnknownCursor(InvalidInput):
    """The cursor does not belong to this list."""

    def __init__(self, detail: str = "cursor: unknown; start without a cursor") -> None:
        super().__init__(detail, errors=[{"field": "cursor", "detail": "not a cursor of this list"}])


class UnsupportedMediaType(InvalidInput):
    """The body has a media type that is not accepted here."""

    status = 415
    title = "Unsupported media type"


class Unauthenticated(RefusedError):
    """There is no token, or an invalid one."""

    status = 401
    title = "Not signed in"

    def __init__(self, detail: str, *, challenge: str = "Bearer") -> None:
        super().__init__(detail, headers={"WWW-Authenticate": challenge})


class PaymentRequired(RefusedError):
    """The balance does not cover the price."""

    status = 402
    title = "Not enough credits"


class Forbidden(RefusedError):
    """The account may not do this."""

    status = 403
    title = "Forbidden"


class NotFound(RefusedError):
    """It does not exist, or the caller may not see it."""

    status = 404
    title = "Not found"


class MethodNotAllowed(RefusedError):
    """The path does not support this method."""

    status = 405
    title = "Method not allowed"


class Conflict(RefusedError):
    """The request conflicts with the current state."""

    status = 409
    title = "Conflict"


class TooManyRequests(RefusedError):
    """A rate limit or quota is exceeded."""

    status = 429
    title = "Too many requests"

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class UpstreamError(RefusedError):
    """The hub or a runner sent an invalid response."""

    status = 502
    title = "Upstream error"


class Unavailable(RefusedError):
    """The platform is frozen, or something that it needs is down."""

    status = 503
    title = "Unavailable"

    def __init__(self, detail: str, *, retry_after: int = 10) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class ScoringFailed(Unavailable):
    """Scoring failed because of the task or the machine, not because of the predictions."""

    title = "Scoring failed"


class ScoringInterrupted(ScoringFailed):
    """Processes that scored were killed or did not start, or met a limit that the file met before."""

    title = "Scoring interrupted"


class UnusableDataset(CollidiumError):
    """The dataset is incomplete or inconsistent."""

    status = 422
    title = "Unusable dataset"


class ConfigurationError(CollidiumError):
    """Settings, plugins or the database schema are wrong; an operator must fix them."""

    title = "Configuration error"


class Unreachable(CollidiumError):
    """The server cannot be reached."""

    title = "Unreachable"
    exit_code = 4
