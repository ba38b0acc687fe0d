"""Who is signed in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody signed in: name, the hub token that acts for them, the secret that their forms carry."""

    hub_username: str
    token: str = field(repr=False)
    csrf: str = field(repr=False)
