"""What a hub does not do, as the errors that a command shows and ends with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collidium.datasets.hub_client import HubContested, HubError, HubRefused
from collidium.errors import (
    CollidiumError,
    Conflict,
    Forbidden,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UpstreamError,
)


@contextmanager
def hub_failures(endpoint: str) -> Iterator[None]:
    """Raise what the hub at ``endpoint`` does not do in the context as a CollidiumError.

    Unreachable where it does not answer, Unavailable where it cannot for now, Conflict where somebody else
    was faster, Unauthenticated, Forbidden, and UpstreamError for every other refusal.
    """
    try:
        yield
    except HubError as error:
        raise _translated(error, f"{endpoint}: {error}") from None


def _translated(error: HubError, told: str) -> CollidiumError:
    if isinstance(error, HubContested):
        return Conflict(f"{told}; try again")
    if not isinstance(error, HubRefused):
        return Unreachable(told) if error.status is None else Unavailable(told)
    if error.status == 401:
        return Unauthenticated(told)
    return Forbidden(told) if error.status == 403 else UpstreamError(told)
