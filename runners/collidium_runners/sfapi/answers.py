"""What may be wrong with an answer; apart from the client, so that it can be caught without the library."""

from __future__ import annotations

from typing import Final

from collidium.contracts.runner import RunnerUnavailable

UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
TOO_LARGE: Final = 413
#: The question, or its answer, was too long.
TOO_LONG: Final = frozenset({TOO_LARGE, 414, 431})
#: The first status that is an error.
ERRORS: Final = 400


class BadAnswer(RunnerUnavailable):
    """The API answered with an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
