"""Errors of the hub, with the codes that ``huggingface_hub`` turns into its exceptions.

Clients retry 408, 429 and 5xx, so permanent errors have another 4xx status.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from typing import Any

from werkzeug.exceptions import HTTPException

from collidium.errors import CollidiumError

logger = logging.getLogger(__name__)


class HubFailure(Exception):
    """An error response: status, ``X-Error-Code``, further fields of the body, and further headers."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.body = dict(body or {})
        self.headers = dict(headers or {})


def invalid(message: str) -> HubFailure:
    return HubFailure(400, message)


def not_signed_in() -> HubFailure:
    return HubFailure(401, "A valid token of this hub is required")


def repo_not_found(*, anonymous: bool) -> HubFailure:
    """The repository does not exist or is hidden from the caller; the response does not reveal which."""
    return HubFailure(401 if anonymous else 404, "Repository not found", "RepoNotFound")


def revision_not_found(revision: str) -> HubFailure:
    return HubFailure(404, f"No branch, tag or commit {revision!r}", "RevisionNotFound")


def entry_not_found(path: str) -> HubFailure:
    return HubFailure(404, f"No file or folder {path!r} at this revision", "EntryNotFound")


def as_hub_error(error: Exception) -> HubFailure:
    """Convert any error that a handler may raise."""
    if isinstance(error, HubFailure):
        return error
    if isinstance(error, CollidiumError):
        return HubFailure(error.status, error.detail, headers=error.headers)
    if isinstance(error, HTTPException):
        return HubFailure(error.code or 500, error.description or error.name)
    assert isinstance(error, sqlite3.OperationalError)  # noqa: S101 -- handlers are registered for no other
    logger.error("the hub's database: %s", error)
    return HubFailure(503, "The hub's database is busy or its disk is full; try again soon")
