"""How an answer is scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import flatten
from collidium.contracts.task import (
    Block,
    Card,
    Problem,
    Reconstruction,
    Tables,
    Task,
    UnusableTruth,
)
from collidium_task_vertexing.baselines import densest, hardest
from collidium_task_vertexing.card import CARD, WINDOW

#: Half the length of the beam line on which a vertex can be, in mm.
FARTHEST = 1000.0

HARD_SCATTER = 1
NM_PER_MM = 10**6
NM_PER_UM = 1000


@dataclass(frozen=True, slots=True)
class Tally:
    """What is counted in some events. ``squares`` are those of distances in nm: integers add up exactly."""

    events: int = 0
    found: int = 0
    squares: int = 0


class VertexingTask(Task):
    """Scores one position per event."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        """One row per event that has a hard scatter: its id and z, in mm.

        z is the median of the particles, the lower one of two: some are made where others decayed.
        """
        particles = tables["particles"]
        needed = ["vertex_primary", "vz"]
        if missing := [name for name in needed if name not in particles.column_names]:
            raise UnusableTruth(f"table particles lacks {', '.join(missing)}")
        generated = [name for name in ("primary",) if name in particles.column_names]
        flat = flatten(particles, needed + generated)
        wanted = pc.field("vertex_primary") == HARD_SCATTER
        flat = flat.filter(wanted & pc.field("primary") if generated else wanted)
        events = np.asarray(flat["event_id"], dtype=np.uint32)
        z = np.asarray(flat["vz"], dtype=np.float64)
        order = np.lexsort((z, events))
        ids, first, count = np.unique(events[order], return_index=True, return_counts=True)
        medians = z[order][first + (count - 1) // 2]
        columns = {"event_id": pa.array(ids, pa.uint32()), "z": pa.array(medians)}
        return {"vertices": pa.table(columns)}

    def check(self, block: Block) -> list[Problem]:
        """Everything that is wrong, so that it can be mended at once."""
        events = np.asarray(block.predictions["event_id"])
        z = np.asarray(block.predictions["z"], dtype=np.float64)
        problems = []
        if repeated := int(np.count_nonzero(events[1:] == events[:-1])):
            problems.append(Problem("duplicate-row", "Give each event once.", "event_id", count=repeated))
        outside = np.flatnonzero(np.abs(z) > FARTHEST)
        if len(outside):
            detail = f"Give z in mm, from {-FARTHEST:.0f} to {FARTHEST:.0f}."
            examples = tuple({"event_id": int(events[row]), "z": float(z[row])} for row in outside[:3])
            problems.append(Problem("outside", detail, "z", count=len(outside), examples=examples))
        return problems

    def score(self, block: Block) -> Tally:
        truth = block.truth["vertices"]
        events = np.asarray(truth["event_id"], dtype=np.int64)
        answered = np.asarray(block.predictions["event_id"], dtype=np.int64)
        known = np.isin(answered, events)
        rows = np.searchsorted(events, answered[known])
        predicted = np.asarray(block.predictions["z"], dtype=np.float64)[known]
        distance = np.abs(predicted - np.asarray(truth["z"])[rows])
        found = np.rint(distance[distance <= WINDOW] * NM_PER_MM).astype(np.int64)
        return Tally(len(events), len(found), int(np.sum(found * found)))

    def merge(self, tallies: Sequence[Tally]) -> Tally:
        return Tally(
            sum(tally.events for tally in tallies),
            sum(tally.found for tally in tallies),
            sum(tally.squares for tally in tallies),
        )

    def metrics(self, tally: Tally) -> dict[str, float]:
        # Nothing found is as bad as can be, not as good.
        resolution = sqrt(tally.squares / tally.found) / NM_PER_UM if tally.found else 1000 * WINDOW
        return {"efficiency": tally.found / max(tally.events, 1), "resolution": resolution}

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"densest": densest, "hardest": hardest}

    def oracle(self, truth: Tables) -> pa.Table:
        return truth["vertices"]
