"""Errors of the hub.

The codes are those that ``huggingface_hub`` turns into its own exceptions. A client tries 408, 429 and 5xx
again, so what is final is another 4xx.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HubError(Exception):
    """An error response: its status, ``X-Error-Code`` and body."""

    def __init__(
        self, status: int, message: str, code: str | None = None, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.body = dict(body or {})


def invalid(message: str) -> HubError:
    """The request is invalid."""
    return HubError(400, message)


def not_signed_in() -> HubError:
    return HubError(401, "Sign in with a token of this hub: it is missing or not valid.")


def repo_not_found(*, anonymous: bool) -> HubError:
    """No such repository, or none that the caller may see: the response does not reveal which."""
    return HubError(401 if anonymous else 404, "Repository not found", "RepoNotFound")


def revision_not_found(revision: str) -> HubError:
    return HubError(404, f"No branch, tag or commit {revision!r}", "RevisionNotFound")


def entry_not_found(path: str) -> HubError:
    return HubError(404, f"No file or folder {path!r} at this revision", "EntryNotFound")
