"""How the settings of a challenge are shown: all of them, and those that headings list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.declaration import facts
from collidium.presentation.quantities import value_text
from collidium.records.challenge_settings import CHALLENGE_SETTINGS

if TYPE_CHECKING:
    from collidium.records import Challenge


def setting_rows(challenge: Challenge) -> dict[str, object]:
    """Return the settings of a challenge by their labels, without its rules."""
    has_teams = challenge.team_size > 1
    organisation = challenge.organisation and f"organisation {challenge.organisation}"
    values = challenge.settings | {
        "access": ", ".join(filter(None, (challenge.access, organisation))),
        "team_size": challenge.team_size if has_teams else "no teams",
        "teams_frozen_at": challenge.teams_frozen_at or challenge.closes_at,
    }
    if challenge.phase:
        values["public_percent"] = f"{challenge.public_percent}% public, {challenge.phase} part counts"
    hidden = {"organisation", "rules"} if has_teams else {"organisation", "rules", "teams_frozen_at"}
    return facts((field for field in CHALLENGE_SETTINGS if field.name not in hidden), values)


def heading_rows(challenge: Challenge) -> dict[str, str]:
    """Return what headings show of a challenge's settings, in addition to its title, dates and phase."""
    values = challenge.settings
    return {
        field.label.lower(): value_text(values[field.name])
        for field in CHALLENGE_SETTINGS
        if field.is_in_heading and values[field.name] != field.default
    }
