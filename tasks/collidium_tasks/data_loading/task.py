"""The task; its metrics and checks are in the other modules of the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from collidium.contracts.digest import event_digests, together
from collidium.contracts.task import Block, Card, Problem, Tables, Task, UnusableTruth
from collidium_tasks.data_loading import tally as tallying
from collidium_tasks.data_loading.card import CARD, FIRST_EVENT, SECONDS
from collidium_tasks.data_loading.tally import Tally


class DataLoadingTask(Task):
    """Sees that a slice was read, and ranks by the times that the submitter took.

    Its one row is about all events, so what is wrong with it shows when their tallies are together.
    """

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        (name,) = self.card.truth_sources
        try:
            digests = event_digests(tables[name])
        except ValueError as error:
            raise UnusableTruth(f"table {name}: {error}") from error
        events = tables[name].column("event_id").cast(pa.uint32()).combine_chunks()
        first = np.asarray(events) == FIRST_EVENT
        return {
            "slices": pa.table({"event_id": events.filter(pa.array(first))}),
            "events": pa.table({"event_id": events, "digest": pa.array(digests)}),
        }

    def check(self, block: Block) -> list[Problem]:
        ids = np.asarray(block.predictions.column("event_id"))
        other = int(np.count_nonzero(ids != FIRST_EVENT))
        again = len(ids) - other - 1
        found = []
        if other:
            detail = f"The one row that is asked for has event_id {FIRST_EVENT}: the slice begins with it."
            example = {"event_id": int(ids[ids != FIRST_EVENT][0])}
            found.append(Problem("unknown-slice", detail, "event_id", count=other, examples=(example,)))
        if again > 0:
            detail = "The slice was submitted before; it is one row."
            found.append(Problem("duplicate-row", detail, "event_id", FIRST_EVENT, again))
        return found

    def score(self, block: Block) -> Tally:
        return tallying.collect(block)

    def merge(self, tallies: Sequence[Tally]) -> Tally:
        return tallying.merge(tallies)

    def check_whole(self, tally: Tally) -> list[Problem]:
        return tallying.problems(tally)

    def metrics(self, tally: Tally) -> dict[str, float]:
        return tallying.metrics(tally)

    def oracle(self, truth: Tables) -> pa.Table:
        events = truth["events"]
        seconds = pa.array([SECONDS[0]], pa.float64())
        return pa.table(
            {
                "event_id": pa.array([FIRST_EVENT], pa.int64()),
                "events": pa.array([events.num_rows], pa.int64()),
                "digest": pa.array([together(np.asarray(events.column("digest"), np.uint64))], pa.int64()),
                "seconds_local": seconds,
                "seconds_streaming": seconds,
            }
        )
