"""The card of the tracking benchmark, and problems of the rows of a submission."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Card, Column, EventRange, Metric, Problem
from collidium_tasks.tracking.events import UNKNOWN, Event, rows_of_hits

CARD = Card(
    name="tracking",
    title="Charged-particle tracking",
    description=(
        "Group the tracker hits of each event into tracks, one for each charged particle. "
        "A track is correct when one particle owns at least half of its hits and has at least half of "
        "its own hits in it. Hits given track_id -1, and hits not submitted, belong to no track."
    ),
    dataset="ttbar_pu200",
    eval_events=EventRange(90_000, 100_000),
    inputs=("tracker_hits",),
    columns=(
        Column(name="event_id", kind="integer", description="Event of the hit."),
        Column(name="hit_id", kind="integer", description="The hit within its event; each hit at most once."),
        Column(
            name="track_id",
            kind="integer",
            description="Track of the hit, 0 or more; -1 for a hit without a track.",
        ),
    ),
    left_out="Hits that are not submitted, and hits with track_id -1, belong to no track: their weight is "
    "lost.",
    truth_sources=("tracker_hits", "particles"),
    rows_of="hits",
    metrics=(
        Metric(
            name="trackml_weighted_efficiency",
            title="TrackML efficiency",
            higher_is_better=True,
            description="Weight of the hits that correct tracks share with their particle, over the weight "
            "of all hits that a particle left. Hits weigh as in TrackML unless the truth was imported with "
            "other weights (truth_notes).",
            formula="weight of the dominating particle's hits in correct tracks / weight of all hits but "
            "noise; a particle dominates a track of which it owns 50% of the hits or more, and the track is "
            "correct when that is 50% of the particle's own hits or more. A weight is an order factor times "
            "a pT factor, and the weights of an event add up to 1. Order: 10, 8, 6, 5, 3, 3, 3, 5, 6, "
            "stretched linearly over the particle's hits by |z - vz| and normalised to 1, equal ones share "
            "the middle place; at most 20 hits; 0 for particles with fewer than 4. "
            "pT: 0 below 0.05 GeV, 0.2 up to 0.5 GeV, linear to 1 at 3 GeV. "
            "Noise weighs 0, secondaries weigh as primaries. Departures from TrackML: both majorities need "
            "half or more, TrackML's more than half; of two particles with half of a track each, the one "
            "that makes it correct dominates, the one of the smaller id where both do; hits without a row "
            "count as unassigned; z is measured where the dataset has no true_z; without vz, hits are "
            "ordered by distance from the origin, and without momenta the pT factor is 1",
            source="after S. Amrouche et al., The Tracking Machine Learning challenge: Accuracy phase, "
            "arXiv:1904.06778",
            bounds=(0, 1),
        ),
        Metric(
            name="fake_rate",
            title="Fake rate",
            higher_is_better=False,
            description="Fraction of tracks of which no particle owns at least half the hits, among tracks "
            "of at least 4 hits.",
            formula="tracks of at least 4 hits that no particle dominates / tracks of at least 4 hits",
            bounds=(0, 1),
        ),
        Metric(
            name="duplicate_rate",
            title="Duplicate rate",
            higher_is_better=False,
            description="Fraction of particles that dominate more than one track of at least 4 hits.",
            formula="particles that dominate more than one track of at least 4 hits / particles that have a "
            "hit",
            bounds=(0, 1),
        ),
        Metric(
            name="physics_eff_pt1",
            title="Efficiency above 1 GeV",
            higher_is_better=True,
            description="Fraction of primary particles with transverse momentum above 1 GeV that dominate a "
            "track which holds at least 3 of their hits.",
            formula="primary particles with pt > 1 GeV that dominate a track with at least 3 of their hits "
            "(all, where they have fewer) / primary particles with pt > 1 GeV that have a hit; no other cut; "
            "where the dataset has no flag primary, all particles count as primary",
            bounds=(0, 1),
        ),
        Metric(
            name="double_majority_eff_pt1",
            title="Double-majority efficiency above 1 GeV",
            higher_is_better=True,
            description="Fraction of primary particles with transverse momentum above 1 GeV, |eta| < 3 and "
            "at least 6 hits that have a correct track.",
            formula="primary particles with pt > 1 GeV, |eta| < 3 and at least 6 hits that dominate a track "
            "which has half of their hits or more / all such particles; without momenta along z all have "
            "|eta| < 3",
            reward=0,
            bounds=(0, 1),
        ),
    ),
)

#: -1 as an unsigned integer.
WRAPPED = (2**32 - 1, 2**64 - 1)
#: Rows shown for each kind of problem.
EXAMPLES = 5

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class _Finding:
    """One kind of problem, the number of rows that have it, and examples."""

    code: str
    column: str
    detail: str
    count: int = 0
    examples: list[dict[str, int]] = field(default_factory=list)

    def add(self, event: Event, rows: Rows) -> None:
        self.count += len(rows)
        for row in rows[: EXAMPLES - len(self.examples)].tolist():
            hit, track = int(event.hit_id[row]), int(event.track_id[row])
            self.examples.append({"event_id": event.event_id, "hit_id": hit, "track_id": track})

    def problem(self) -> Problem:
        first = self.examples[0]["event_id"]
        return Problem(self.code, self.detail, self.column, first, self.count, tuple(self.examples))


def problems_of(events: Iterable[Event]) -> list[Problem]:
    """Return every kind of problem of the events' rows, with the number of rows and examples.

    Repeated rows count from the second one. Rows of unknown hits are never repeated.
    """
    negative_hit = _Finding("negative-id", "hit_id", "hit_id is negative; hit ids are 0 or more.")
    unknown_hit = _Finding("unknown-hit", "hit_id", "The event has no hit of this hit_id.")
    repeated = _Finding(
        "duplicate-row", "hit_id", "The hit was submitted before; each (event_id, hit_id) may stand once."
    )
    negative_track = _Finding(
        "negative-track", "track_id", "track_id is negative; use 0 or more, or -1 for a hit without a track."
    )
    wrapped_track = _Finding(
        "negative-track",
        "track_id",
        "track_id is -1 that an unsigned type turned into its largest number; write -1 in a signed type.",
    )
    for event in events:
        negative_track.add(event, _below(event.track_id, -1))
        wrapped_track.add(event, _wrapped(event.track_id))
        if event.same_hits:
            continue
        negative = _below(event.hit_id, 0)
        places = rows_of_hits(event.true_hit_id, event.hit_id)
        unknown = np.flatnonzero(places == UNKNOWN)
        negative_hit.add(event, negative)
        unknown_hit.add(event, np.setdiff1d(unknown, negative, assume_unique=True))
        repeated.add(event, _repeated(places, len(event.true_hit_id), len(places) - len(unknown)))
    findings = (negative_hit, unknown_hit, repeated, negative_track, wrapped_track)
    return [finding.problem() for finding in findings if finding.count]


def _below(ids: npt.NDArray[np.integer], minimum: int) -> Rows:
    """Return rows whose id is less than ``minimum``, which is 0 or negative."""
    if ids.dtype.kind == "u" or not len(ids) or ids.min() >= minimum:
        return np.empty(0, np.intp)
    return np.flatnonzero(ids < minimum)


def _wrapped(ids: npt.NDArray[np.integer]) -> Rows:
    """Return rows with -1 as unsigned integers of 32 or 64 bits, which would be one track over all noise.

    Small types are left out: 255 may be the last of 256 tracks.
    """
    if ids.dtype.kind != "u" or not len(ids) or int(ids.max()) < WRAPPED[0]:
        return np.empty(0, np.intp)
    return np.flatnonzero(np.logical_or.reduce([ids == wrapped for wrapped in WRAPPED]))


def _repeated(places: npt.NDArray[np.int64], hits: int, known: int) -> Rows:
    """Return rows whose hit is also in an earlier row; ``known`` is the number of rows with a known hit."""
    seen = np.zeros(hits + 1, np.bool_)  # the last entry is for UNKNOWN
    seen[places] = True
    if np.count_nonzero(seen[:hits]) == known:
        return np.empty(0, np.intp)
    rows = np.flatnonzero(places != UNKNOWN)
    order = rows[np.argsort(places[rows], kind="stable")]
    again = places[order][1:] == places[order][:-1]
    return np.sort(order[1:][again])
