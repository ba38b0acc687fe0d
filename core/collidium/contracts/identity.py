"""The contract of an identity provider, which resolves bearer tokens to accounts."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

#: Valid account names.
USERNAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
#: How a domain of e-mail addresses is written among organisations, none of which is named so.
DOMAIN: Final = re.compile(r"@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
#: Names that erased accounts have; no account signs in by one.
ERASED: Final = re.compile(r"erased-[0-9]+")
#: Ends the names of accounts and organisations that come from single sign-on; nothing of a hub has it.
SSO_SUFFIX: Final = ".sso"
#: Begins the platform's own tokens, so that none is sent to a hub, and leaked ones are known for ours.
OWN_PREFIX: Final = "collidium_"


@dataclass(frozen=True, slots=True)
class Identity:
    """An account of the hub, or of another provider.

    Raises
    ------
    ValueError
        For an invalid name. A provider whose source returns one raises :class:`IdentityUnavailable`.

    Examples
    --------
    >>> Identity("ada").read_only
    False
    """

    username: str
    #: Whether the token cannot write, and so cannot publish.
    read_only: bool = False
    #: The organisations of the hub where the account may do more than read, as far as the token shows.
    organisations: frozenset[str] = frozenset()
    #: All organisations of the hub where the account is, as far as the token shows.
    memberships: frozenset[str] = frozenset()
    #: Whether the token is one of the hub, with which to publish and to see models.
    on_hub: bool = True

    def __post_init__(self) -> None:
        if not USERNAME.fullmatch(self.username):
            raise ValueError(f"no account may be named {self.username[:100]!r}")


class IdentityProvider(ABC):
    """Checks tokens; one long-lived instance per server process."""

    name: str
    #: Tokens that begin so are this provider's, in addition to those of the one that ``PLATFORM_IDENTITY``
    #: names: no other is asked about them, and nothing is cached. Empty: none.
    prefix: str = ""

    @abstractmethod
    async def identify(self, token: str) -> Identity | None:
        """Return the owner of a token.

        Parameters
        ----------
        token : str
            Untrusted input.

        Returns
        -------
        Identity or None
            None for an invalid token.

        Raises
        ------
        IdentityUnavailable
            If the answer is unknown at the moment; never return None for that.
        """

    async def sees_model(self, token: str, model_repo: str) -> bool:
        """Return whether a model repository is visible with a token.

        Parameters
        ----------
        token : str
        model_repo : str
            ``namespace/name``.

        Raises
        ------
        IdentityUnavailable
            If the answer is unknown at the moment, or always: the default for providers without repositories.
        """
        raise IdentityUnavailable(f"{self.name} has no model repositories")

    async def check(self) -> str:
        """Check the configuration, for ``collidium doctor``; asked only of providers with a ``prefix``.

        Returns
        -------
        str
            What operators should look at; empty: nothing, the default.

        Raises
        ------
        Exception
            Of any kind, if users cannot sign in.
        """
        return ""

    @abstractmethod
    async def close(self) -> None:
        """Close connections. Idempotent."""


class IdentityUnavailable(RuntimeError):
    """The identity provider cannot be reached, or its response is invalid."""
