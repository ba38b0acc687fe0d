"""TrackML's hit weights: by loops straight from the definition, on random events; how truth finds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import LONG

from collidium.contracts.task import NOTE

from .blocks import TASK


@dataclass(frozen=True)
class Entry:
    """A row of the table of particles."""

    particle: int
    px: float
    py: float
    vz: float


@dataclass(frozen=True)
class Event:
    """Each hit's particle (0: noise) and z, and the particles that are listed."""

    hits: Sequence[tuple[int, float]]
    entries: Sequence[Entry]


PLAN = [10, 8, 6, 5, 3, 3, 3, 5, 6]


def order_weight(place: int, hits: int) -> Fraction:
    """Of the hit at a place, from 0, of a particle that counts as having so many hits."""
    if hits < 4 or place >= hits:
        return Fraction(0)

    def stretched(number: int) -> Fraction:
        at = Fraction(number * (len(PLAN) - 1), hits - 1)
        left = min(int(at), len(PLAN) - 2)
        return PLAN[left] + (PLAN[left + 1] - PLAN[left]) * (at - left)

    return stretched(place) / sum(stretched(number) for number in range(hits))


def pt_weight(pt: float) -> float:
    if pt < 0.05:
        return 0.0
    return 0.2 if pt < 0.5 else min(0.2 + 0.8 * (pt - 0.5) / 2.5, 1.0)


def slow_weights(event: Event) -> list[float]:
    """Hit by hit."""
    entries = {entry.particle: entry for entry in event.entries}
    far = defaultdict(list)
    for particle, z in event.hits:
        if particle in entries:
            far[particle].append(abs(z - entries[particle].vz))
    raw = []
    for particle, z in event.hits:
        if not particle or particle not in entries:
            raw.append(0.0)
            continue
        entry, distances = entries[particle], far[particle]
        nearer = sum(other < abs(z - entry.vz) for other in distances)
        equal = sum(other == abs(z - entry.vz) for other in distances)
        place = nearer + (equal - 1) // 2
        order = 0.0 if place >= 20 else float(order_weight(place, min(len(distances), 20)))
        raw.append(order * pt_weight(float(np.hypot(entry.px, entry.py))))
    total = sum(raw)
    return [weight / total if total else 0.0 for weight in raw]


def tables(events: Sequence[Event], *without: str) -> dict[str, pa.Table]:
    """The events as tables of a dataset; ``without`` some columns."""

    def column(values: Sequence[Sequence[float]], kind: pa.DataType) -> pa.Array:
        return pa.array(values, pa.list_(kind))

    ids = pa.array(range(len(events)), pa.uint32())
    z = column([[z for _, z in event.hits] for event in events], pa.float64())
    hits = {
        "event_id": ids,
        "particle_id": column([[p for p, _ in event.hits] for event in events], pa.uint64()),
        "x": z,
        "y": z,
        "z": z,
    }
    floats = {
        name: column([[getattr(entry, name) for entry in event.entries] for event in events], pa.float64())
        for name in ("px", "py", "vz")
    }
    listed = column([[entry.particle for entry in event.entries] for event in events], pa.uint64())
    particles = pa.table({"event_id": ids, "particle_id": listed, **floats})
    return {"tracker_hits": pa.table(hits), "particles": particles.drop_columns(list(without))}


def made(events: Sequence[Event], *without: str) -> tuple[list[float], dict[str, str]]:
    """Weights of all hits, and the notes on them."""
    hits = TASK.prepare(tables(events, *without))["hits"]
    notes = {key.decode().removeprefix(NOTE): value.decode() for key, value in hits.schema.metadata.items()}
    return hits.column("weight").to_pylist(), notes


@st.composite
def random_events(draw: st.DrawFn) -> Event:
    names = st.sampled_from([0, 1, 2, 3, 2**64 - 1])
    places = st.one_of(st.integers(-4, 4), st.floats(-9, 9, width=16))
    sizes = draw(st.sampled_from([4, 12, 60]))
    hits = draw(st.lists(st.tuples(names, places), max_size=sizes))
    momenta = st.sampled_from([0.0, 0.04, 0.05, 0.3, 0.5, 1.0, 2.9, 3.0, 80.0])
    entries = [
        Entry(name, draw(momenta), draw(momenta), draw(places))
        for name in draw(st.lists(names.filter(bool), unique=True))
    ]
    return Event(hits, entries)


@settings(max_examples=1000 if LONG else 40)
@given(st.lists(random_events(), max_size=4))
def test_weights_are_those_of_the_definition(events: list[Event]) -> None:
    weights, _ = made(events)
    expected = [weight for event in events for weight in slow_weights(event)]
    assert weights == pytest.approx(expected, rel=2**-24, abs=1e-15)  # rounded to float32


def test_weights_by_hand() -> None:
    """Four hits weigh 10, 6, 3 + 1/3 - 1/3 and 6 parts; the other particle has three, and a factor of 0."""
    event = Event([(1, 9.0), (1, -1.5), (1, 4.0), (1, 0.0), (2, 1.0), (2, 2.0), (2, 3.0)], [])
    event = Event(event.hits, [Entry(1, 3.0, 0.0, 0.5), Entry(2, 9.0, 0.0, 0.0)])
    # At 0, 8/3, 16/3 and 8 of the plan: 10, 6 - 2/3, 3 and 6.
    parts = np.array([10, 16 / 3, 3, 6]) / (10 + 16 / 3 + 3 + 6)
    assert made([event])[0] == pytest.approx([parts[3], parts[1], parts[2], parts[0], 0, 0, 0])


LONG_TRACK = Event([(1, float(z)) for z in range(1, 26)], [Entry(1, 1.0, 0.0, 30.0)])


def test_hits_beyond_the_twentieth_weigh_nothing() -> None:
    weights, notes = made([LONG_TRACK])
    assert [weight > 0 for weight in weights] == [False] * 5 + [True] * 20
    assert sum(weights) == pytest.approx(1)
    assert notes == {
        "hit_weights": "TrackML",
        "hit_order": "distance in z from the particle's vertex",
        "pt_factor": "TrackML",
    }


def test_without_vertex_hits_are_ordered_from_the_origin() -> None:
    weights, notes = made([LONG_TRACK], "vz")
    assert [weight > 0 for weight in weights] == [True] * 20 + [False] * 5
    assert notes["hit_order"] == "distance from the origin"


def test_without_momentum_all_particles_weigh_the_same() -> None:
    hits = [(particle, float(z)) for particle in (1, 2) for z in range(5)]
    event = Event(hits, [Entry(1, 0.1, 0.0, 0.0), Entry(2, 9.0, 0.0, 0.0)])
    assert sum(made([event])[0][:5]) == pytest.approx(1 / 6)
    weights, notes = made([event], "px", "py")
    assert sum(weights[:5]) == pytest.approx(1 / 2)
    assert notes["pt_factor"] == "1, as particles have no momentum"


def test_true_positions_order_hits_where_there_are_any() -> None:
    source = tables([LONG_TRACK])
    backwards = pa.array([[z for _, z in reversed(LONG_TRACK.hits)]])
    source["tracker_hits"] = source["tracker_hits"].append_column("true_z", backwards)
    weights = TASK.prepare(source)["hits"].column("weight").to_pylist()
    assert weights == pytest.approx(made([LONG_TRACK])[0][::-1])
