"""What is there to be read, and what was read: sums over events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from collidium.contracts.digest import MODULUS, together
from collidium.contracts.task import Block, Problem
from collidium_tasks.data_loading.card import CARD

#: Metric -> the time that it is the inverse of.
TIMES: Final = {metric.name: metric.name.replace("events_per_second", "seconds") for metric in CARD.metrics}


@dataclass(frozen=True, slots=True)
class Tally:
    """Events and digest of some of the truth, and the row that was submitted, if it is among them."""

    events: int
    digest: int
    row: dict[str, Any] | None


def collect(block: Block) -> Tally:
    """The tally of some events; there is one row at the most."""
    truth = block.truth["events"]
    rows = block.predictions.to_pylist()
    digests = np.asarray(truth.column("digest"), np.uint64)
    return Tally(truth.num_rows, together(digests), rows[0] if rows else None)


def merge(tallies: Sequence[Tally]) -> Tally:
    """The tally of all their events."""
    rows = [tally.row for tally in tallies if tally.row is not None]
    return Tally(
        events=sum(tally.events for tally in tallies),
        digest=sum(tally.digest for tally in tallies) % MODULUS,
        row=rows[0] if rows else None,
    )


def problems(tally: Tally) -> list[Problem]:
    """What is wrong with the row that was submitted, if there is one."""
    row = tally.row
    if row is None:
        return []
    found = []
    if row["events"] != tally.events:
        found.append(_problem("wrong-events", "events", row, f"The slice has {tally.events} events."))
    if row["digest"] != tally.digest:
        detail = "What was read is not what the dataset has: other events, columns, or another release of it."
        found.append(_problem("wrong-digest", "digest", row, detail))
    return found


def metrics(tally: Tally) -> dict[str, float]:
    """Events over seconds, from disk and over HTTP; none where the row is not among the events."""
    row = tally.row
    return {} if row is None else {name: row["events"] / float(row[time]) for name, time in TIMES.items()}


def _problem(code: str, column: str, row: dict[str, Any], detail: str) -> Problem:
    return Problem(code, detail, column, row["event_id"], examples=({column: row[column]},))
