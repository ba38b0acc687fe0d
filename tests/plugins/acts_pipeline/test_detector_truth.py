"""Whose track it is, and where a helix passes the beams."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collidium.contracts import FIELD_TESLA
from collidium_plugins.acts_pipeline.detector.reconstruction import majority
from collidium_plugins.acts_pipeline.events import Particles
from collidium_plugins.acts_pipeline.tables import perigee


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), max_size=6))
def test_the_majority_particle_of_equals_has_the_smallest_id(tracks: list[list[int]]) -> None:
    expected = [min(Counter(track).items(), key=lambda item: (-item[1], item[0]))[0] for track in tracks]
    owners = np.array([particle for track in tracks for particle in track], np.uint64)
    assert majority(owners, np.array([len(track) for track in tracks], np.uint16)).tolist() == expected


def along_the_helix(charge: float, turn: float) -> tuple[Particles, float, float]:
    """A particle seen after part of a turn, and d0 and z0 of its perigee, where it began."""
    pt, pz, d0, z0, phi = 1.5, 0.7, -3.0, 25.0, 0.4
    curvature = -0.299792458e-3 * FIELD_TESLA * charge / pt
    direction = phi + turn * np.sign(curvature)
    arc = turn / abs(curvature)
    x = -d0 * np.sin(phi) + (np.sin(direction) - np.sin(phi)) / curvature
    y = d0 * np.cos(phi) - (np.cos(direction) - np.cos(phi)) / curvature
    columns = {"charge": charge, "px": pt * np.cos(direction), "py": pt * np.sin(direction), "pz": pz}
    columns |= {"vx": x, "vy": y, "vz": z0 + arc * pz / pt}
    return one(columns), d0, z0


def one(columns: dict[str, float]) -> Particles:
    arrays: dict[str, Any] = {
        field.name: np.array([columns.get(field.name, 0.0)]) for field in fields(Particles)
    }
    return Particles(**arrays)


@pytest.mark.parametrize("charge", [1.0, -1.0, 2.0])
@pytest.mark.parametrize("turn", [-1.5, 0.0, 0.3, 3.0])
def test_the_perigee_of_a_charged_particle(charge: float, turn: float) -> None:
    particles, d0, z0 = along_the_helix(charge, turn)
    found = perigee(particles, FIELD_TESLA)
    assert found[0] == pytest.approx(d0, abs=1e-3)
    assert found[1] == pytest.approx(z0, abs=1e-3)


def test_a_neutral_particle_flies_straight() -> None:
    d0, z0 = perigee(one({"px": 1.0, "pz": 2.0, "vx": 10.0, "vy": 3.0, "vz": 5.0}), FIELD_TESLA)
    assert (d0[0], z0[0]) == (3.0, -15.0)


def test_no_particles_have_no_perigees() -> None:
    nothing: dict[str, Any] = {field.name: np.empty(0) for field in fields(Particles)}
    none = Particles(**nothing)
    assert [len(values) for values in perigee(none, FIELD_TESLA)] == [0, 0]
