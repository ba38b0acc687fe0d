"""What can be wrong with the rows of a submission, found event by event and reported together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Problem
from collidium_tasks.tracking.events import UNKNOWN, Event, rows_of_hits

#: Rows shown for each kind of problem.
EXAMPLES = 5

Rows = npt.NDArray[np.intp]


@dataclass(slots=True)
class _Finding:
    """One kind of problem and the rows that have it."""

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
    """Every kind of problem that the events' rows have, with its number of rows and a few of them.

    A repeated row is counted each time after the first; rows of unknown hits are not looked at for
    repetitions.
    """
    negative_hit = _Finding("negative-id", "hit_id", "hit_id is negative; hit ids are 0 or more.")
    unknown_hit = _Finding("unknown-hit", "hit_id", "The event has no hit of this hit_id.")
    repeated = _Finding(
        "duplicate-row", "hit_id", "The hit was submitted before; each (event_id, hit_id) may stand once."
    )
    negative_track = _Finding(
        "negative-track", "track_id", "track_id is negative; use 0 or more, or -1 for a hit without a track."
    )
    for event in events:
        negative_track.add(event, _below(event.track_id, -1))
        if event.same_hits:
            continue
        negative = _below(event.hit_id, 0)
        places = rows_of_hits(event.true_hit_id, event.hit_id)
        unknown = np.flatnonzero(places == UNKNOWN)
        negative_hit.add(event, negative)
        unknown_hit.add(event, np.setdiff1d(unknown, negative, assume_unique=True))
        repeated.add(event, _repeated(places, len(event.true_hit_id), len(places) - len(unknown)))
    findings = (negative_hit, unknown_hit, repeated, negative_track)
    return [finding.problem() for finding in findings if finding.count]


def _below(ids: npt.NDArray[np.integer], minimum: int) -> Rows:
    """Rows whose id is less than ``minimum``, which is not positive."""
    if ids.dtype.kind == "u" or not len(ids) or ids.min() >= minimum:
        return np.empty(0, np.intp)
    return np.flatnonzero(ids < minimum)


def _repeated(places: npt.NDArray[np.int64], hits: int, known: int) -> Rows:
    """Rows whose hit is in an earlier row, in order; ``known`` rows have a hit."""
    seen = np.zeros(hits + 1, np.bool_)  # the last is that of UNKNOWN
    seen[places] = True
    if np.count_nonzero(seen[:hits]) == known:
        return np.empty(0, np.intp)
    rows = np.flatnonzero(places != UNKNOWN)
    order = rows[np.argsort(places[rows], kind="stable")]
    again = places[order][1:] == places[order][:-1]
    return np.sort(order[1:][again])
