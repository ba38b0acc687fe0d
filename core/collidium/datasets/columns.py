"""Column names differ between dataset releases; here is the one table that says what is meant.

A table maps each canonical name to the names it may have in a file, best first. Columns that are not
listed keep their own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_POSITION: Final = {"x": ("x", "tx"), "y": ("y", "ty"), "z": ("z", "tz")}

ALIASES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "tracker_hits": {**_POSITION, "particle_id": ("particle_id", "majority_particle_id")},
    "calo_hits": _POSITION,
    "particles": {"particle_id": ("particle_id", "majority_particle_id")},
    "tracks": {"majority_particle_id": ("majority_particle_id", "particle_id")},
}


def canonical(table: str, stored: Sequence[str]) -> dict[str, str]:
    """Map canonical names to the ``stored`` names of a file's columns, in the order of the file.

    Where a file has several names for one thing, the best is taken and the others are left out.
    """
    aliases = ALIASES.get(table, {})
    meaning = {alias: name for name, names in aliases.items() for alias in names}
    chosen: dict[str, str] = {}
    for column in stored:
        name = meaning.get(column, column)
        if name not in chosen or column == _best(aliases[name], stored):
            chosen[name] = column
    return chosen


def _best(aliases: Sequence[str], stored: Sequence[str]) -> str:
    return next(alias for alias in aliases if alias in stored)
