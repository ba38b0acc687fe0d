"""Who stands behind a bearer token."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

#: The names that accounts may have, everywhere on the platform.
USERNAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


@dataclass(frozen=True, slots=True)
class Identity:
    """An account of the hub; raises ValueError for a name that no account may have.

    A provider whose source tells such a name raises :class:`IdentityUnavailable`.
    """

    username: str
    #: Whether the token may only read: nothing can be published with it.
    read_only: bool = False
    #: The organisations of the hub where the account may do more than read, as far as the token shows.
    organisations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not USERNAME.fullmatch(self.username):
            raise ValueError(f"no account may be named {self.username[:100]!r}")


class IdentityProvider(ABC):
    """Checks tokens; one long-lived instance per server process."""

    name: str

    @abstractmethod
    async def identify(self, token: str) -> Identity | None:
        """The token's owner, or None when the token is not valid.

        Raises :class:`IdentityUnavailable` when the answer cannot be known now: never None for that.
        """

    async def sees_model(self, token: str, model_repo: str) -> bool:
        """Whether a model repository (``namespace/name``) exists and is visible with the token.

        Raises :class:`IdentityUnavailable` when that cannot be known now, or ever: a provider that knows of
        no repositories leaves this as it is.
        """
        raise IdentityUnavailable(f"{self.name} knows of no model repositories")

    @abstractmethod
    async def close(self) -> None:
        """Give back connections. Idempotent."""


class IdentityUnavailable(RuntimeError):
    """The identity provider cannot be reached or answered nonsense."""
