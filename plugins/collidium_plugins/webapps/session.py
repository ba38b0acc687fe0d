"""Who is signed in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody signed in, in one browser."""

    hub_username: str
    #: The hub token that acts for them; no browser ever sees it.
    token: str = field(repr=False)
    #: The secret that their forms carry.
    csrf: str = field(repr=False)
    #: What their browser is known by.
    key: str = field(repr=False)
    #: When it ends at the latest, in seconds since 1970.
    ends_at: float
