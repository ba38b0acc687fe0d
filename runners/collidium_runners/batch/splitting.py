"""Splits a job into parts that run in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from collidium.contracts.runner import Job

#: As many array tasks as Slurm allows in one job unless its operator allows more (MaxArraySize 1001).
MAX_PARTS: Final = 1000
_SEEDS: Final = 2**31


@dataclass(frozen=True, slots=True)
class Part:
    """Events ``first_event`` to ``first_event + events - 1`` of a job, with a seed that no other part has."""

    index: int
    first_event: int
    events: int
    seed: int


def parts(job: Job, events_per_part: int, max_parts: int = MAX_PARTS) -> tuple[Part, ...]:
    """Cut the job so that exactly its events are simulated, with ids from 0 and no gap.

    Parts have at most ``events_per_part`` events and differ by one at most; where that would make more than
    ``max_parts`` of them, each has more events. The first part has the job's own seed, so that a job of one
    part gives what the pipeline gives for that seed anywhere.
    """
    count = min(-(-job.events // events_per_part), max_parts)
    least, longer = divmod(job.events, count)
    seeds = _seeds(job.seed)
    cut = []
    first_event = 0
    for index in range(count):
        events = least + (index < longer)
        cut.append(Part(index, first_event, events, next(seeds)))
        first_event += events
    return tuple(cut)


def _seeds(seed: int) -> Iterator[int]:
    """The seed, then others of 0 to 2^31-1: none twice, and not those of a neighbouring seed."""
    given = {seed}
    yield seed
    for number in range(_SEEDS):
        other = int.from_bytes(sha256(f"{seed}:{number}".encode()).digest()[:8], "big") % _SEEDS
        if other not in given:
            given.add(other)
            yield other
