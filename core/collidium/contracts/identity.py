"""Who stands behind a bearer token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """An account of the hub."""

    username: str


class IdentityProvider(ABC):
    """Checks tokens; one long-lived instance per server process."""

    name: str

    @abstractmethod
    async def identify(self, token: str) -> Identity | None:
        """The token's owner, or None when the token is not valid.

        Raises :class:`IdentityUnavailable` when the answer cannot be known now: never None for that.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give back connections. Idempotent."""


class IdentityUnavailable(RuntimeError):
    """The identity provider cannot be reached or answered nonsense."""
