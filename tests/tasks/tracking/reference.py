"""Tracking scores by dictionaries and loops, straight from the rules: slow, and easy to check by eye.

Shares no code with the task. Weights are summed as fractions, so nothing is rounded before the last step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

NOISE = 0
UNASSIGNED = -1


@dataclass(frozen=True)
class Hit:
    """A hit of the truth."""

    hit_id: int
    particle_id: int
    weight: float = 1.0


@dataclass(frozen=True)
class Particle:
    """An entry of the particles table."""

    particle_id: int
    pt: float
    primary: bool = True
    eta: float = 0.0


@dataclass(frozen=True)
class TrueEvent:
    """All hits and particles of an event."""

    hits: Sequence[Hit]
    particles: Sequence[Particle] = ()


@dataclass(frozen=True)
class Row:
    """A submitted row."""

    event_id: int
    hit_id: int
    track_id: int


@dataclass
class Counts:
    """Sums over events."""

    found: Fraction = Fraction(0)
    weight: Fraction = Fraction(0)
    tracks: int = 0  # of at least four hits, as are fakes and duplicated particles
    fakes: int = 0
    particles: int = 0
    duplicated: int = 0
    high_pt: int = 0
    reconstructed: int = 0
    accepted: int = 0
    accepted_found: int = 0
    collisions: set[int] = field(default_factory=set)


def metrics(truth: Mapping[int, TrueEvent], rows: Sequence[Row]) -> dict[str, float]:
    """The metrics of rows without problems."""
    counts = Counts()
    for event_id, event in truth.items():
        _count(event, [row for row in rows if row.event_id == event_id], counts)

    def ratio(part: Fraction | int, whole: Fraction | int) -> float:
        return float(Fraction(part) / Fraction(whole)) if whole else 0.0

    return {
        "trackml_weighted_efficiency": ratio(counts.found, counts.weight),
        "fake_rate": ratio(counts.fakes, counts.tracks),
        "duplicate_rate": ratio(counts.duplicated, counts.particles),
        "physics_eff_pt1": ratio(counts.reconstructed, counts.high_pt),
        "double_majority_eff_pt1": ratio(counts.accepted_found, counts.accepted),
    }


def _count(event: TrueEvent, rows: Sequence[Row], counts: Counts) -> None:
    hit_of = {hit.hit_id: hit for hit in event.hits}
    hits_of_particle = Counter(hit.particle_id for hit in event.hits if hit.particle_id != NOISE)
    tracks: dict[int, list[Hit]] = defaultdict(list)
    for row in rows:
        if row.track_id != UNASSIGNED:
            tracks[row.track_id].append(hit_of[row.hit_id])

    dominated = Counter[int]()
    reconstructed = set()
    found = set()
    for hits in tracks.values():
        owned = Counter(hit.particle_id for hit in hits if hit.particle_id != NOISE)
        dominating = [particle for particle, number in owned.items() if 2 * number >= len(hits)]
        correct = [p for p in dominating if 2 * owned[p] >= hits_of_particle[p]]
        counted = len(hits) >= 4
        counts.tracks += counted
        if not dominating:
            counts.fakes += counted
            continue
        chosen = min(correct) if correct else min(dominating)
        dominated[chosen] += counted
        if correct:
            found.add(chosen)
            counts.found += sum(Fraction(hit.weight) for hit in hits if hit.particle_id == chosen)
        if owned[chosen] >= min(3, hits_of_particle[chosen]):
            reconstructed.add(chosen)

    high_pt = {
        particle.particle_id
        for particle in event.particles
        if particle.primary and particle.pt > 1 and hits_of_particle[particle.particle_id] > 0
    }
    accepted = {
        particle.particle_id
        for particle in event.particles
        if particle.particle_id in high_pt
        and abs(particle.eta) < 3
        and hits_of_particle[particle.particle_id] >= 6
    }
    counts.accepted += len(accepted)
    counts.accepted_found += len(accepted & found)
    counts.weight += sum(Fraction(hit.weight) for hit in event.hits if hit.particle_id != NOISE)
    counts.particles += len(hits_of_particle)
    counts.duplicated += sum(number > 1 for number in dominated.values())
    counts.high_pt += len(high_pt)
    counts.reconstructed += len(high_pt & reconstructed)


def problems(truth: Mapping[int, TrueEvent], rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows with problems, by code, in order of rows."""
    found: dict[str, list[Row]] = defaultdict(list)
    seen: set[tuple[int, int]] = set()
    for row in rows:
        event = truth.get(row.event_id, TrueEvent(()))
        if row.track_id < UNASSIGNED:
            found["negative-track"].append(row)
        if row.hit_id < 0:
            found["negative-id"].append(row)
        elif row.hit_id not in {hit.hit_id for hit in event.hits}:
            found["unknown-hit"].append(row)
        elif (row.event_id, row.hit_id) in seen:
            found["duplicate-row"].append(row)
        seen.add((row.event_id, row.hit_id))
    return dict(found)
