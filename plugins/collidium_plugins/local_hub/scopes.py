"""Scopes of tokens: what an application was allowed. Tokens without scopes may do everything."""

from __future__ import annotations

from typing import Final

#: Scopes of the hub, each as the consent page describes it.
SCOPES: Final = {
    "openid": "Know that it is you who signs in",
    "profile": "See your account's name",
    "email": "See your email address; this hub keeps none",
    "read-repos": "Read your repositories, private ones too",
    "write-repos": "Change your repositories",
    "manage-repos": "Make and delete repositories under your name",
}

#: Scopes implied by others.
_IMPLIED: Final = {
    "write-repos": frozenset({"read-repos"}),
    "manage-repos": frozenset({"read-repos", "write-repos"}),
}

Scopes = frozenset[str]


def read_scopes(text: str) -> Scopes:
    """The scopes of a text with spaces between them (RFC 6749, section 3.3)."""
    return frozenset(text.split())


def write_scopes(scopes: Scopes) -> str:
    """The scopes as one text, in the hub's own order."""
    return " ".join(scope for scope in SCOPES if scope in scopes)


def allow(granted: Scopes | None, wanted: str) -> bool:
    """Whether these scopes allow ``wanted``; None, for a token of the account itself, allows everything."""
    return granted is None or any(
        wanted == scope or wanted in _IMPLIED.get(scope, frozenset()) for scope in granted
    )
