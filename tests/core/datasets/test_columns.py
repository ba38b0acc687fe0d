"""Canonical names of columns."""

from __future__ import annotations

import pytest

from collidium.datasets.schemas import ALIASES, canonical


@pytest.mark.parametrize(
    ("table", "stored", "expected"),
    [
        (
            "tracker_hits",
            ["event_id", "tx", "ty", "tz"],
            {"event_id": "event_id", "x": "tx", "y": "ty", "z": "tz"},
        ),
        ("tracker_hits", ["x", "tx"], {"x": "x"}),
        ("tracker_hits", ["tx", "x"], {"x": "x"}),
        ("tracker_hits", ["majority_particle_id"], {"particle_id": "majority_particle_id"}),
        ("tracks", ["particle_id"], {"majority_particle_id": "particle_id"}),
        ("tracks", ["tx"], {"tx": "tx"}),
        ("tracker_hits", ["weight", "true_x"], {"weight": "weight", "true_x": "true_x"}),
        ("a_table_of_another_package", ["tx", "x"], {"tx": "tx", "x": "x"}),
    ],
)
def test_every_alias_has_a_canonical_name(table: str, stored: list[str], expected: dict[str, str]) -> None:
    assert canonical(table, stored) == expected


def test_aliases_are_unambiguous() -> None:
    for aliases in ALIASES.values():
        names = [alias for names in aliases.values() for alias in names]
        assert len(names) == len(set(names))
        assert all(names[0] == name for name, names in aliases.items())
