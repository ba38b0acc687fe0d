"""Plans scoring jobs: which events, and which row groups of the predictions in which order.

Pure functions over footers. Truth consists of blocks of whole events; a job is a run of blocks, so that only
row groups that straddle two jobs are decoded twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import EventRange, Problem
from collidium.scoring.predictions import Footer, FooterRequest, RowGroup, inspect

Counts = npt.NDArray[np.int64]

#: Approximate maximum rows of truth per job: seconds of work, so that submissions take turns.
MAX_JOB_ROWS: Final = 16 * 1024**2
#: Minimum of that in larger files: both jobs decode a row group that straddles a cut.
MIN_JOB_ROWS: Final = 8 * 1024**2
#: Minimum jobs per file if its size allows: enough for a laptop's cores.
MIN_JOBS: Final = 4
#: Maximum rows of a row group that is decoded whole.
MAX_GROUP_ROWS: Final = 4 * 1024**2
#: Maximum rows in memory that wait for the rest of their events.
MAX_WAITING_ROWS: Final = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class TruthBlock:
    """Whole events: batch ``index`` of each truth table. ``rows``: maximum number of predictions."""

    index: int
    events: EventRange
    rows: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group as read by one job: whole by the last job that reads it, else up to the job's last event.

    The last job that reads a group checks its order, and reports rows of unknown events.
    """

    group: RowGroup
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive blocks, and the pieces with their events in reading order."""

    blocks: tuple[TruthBlock, ...]
    pieces: tuple[Piece, ...]

    @property
    def events(self) -> EventRange:
        return EventRange(self.blocks[0].events.start, self.blocks[-1].events.stop)

    def steps(self) -> Iterator[tuple[Piece, int]]:
        """The pieces, each with the event below which no later piece has rows."""
        following = [piece.group.first or 0 for piece in self.pieces[1:]]
        return zip(self.pieces, [*following, self.events.stop], strict=False)


def plan(blocks: Sequence[TruthBlock], footer: Footer, job_rows: int | None = None) -> list[Span] | None:
    """Return spans that cover all blocks and row groups, each of which can be streamed in bounded memory.

    None if the file does not allow that: row groups without statistics, too large, or with unsorted events.
    """
    groups = sorted(
        (group for group in footer.groups if group.first is not None),
        key=lambda g: (g.first, g.last, g.index),
    )
    if len(groups) < len(footer.groups) or any(group.rows > MAX_GROUP_ROWS for group in groups):
        return None
    claims = _claims(groups, EventRange(blocks[0].events.start, blocks[-1].events.stop))
    # A single job decodes nothing twice, which helps small unsorted files.
    for rows in (job_rows or _job_rows(blocks), sum(block.rows for block in blocks)):
        cuts = _cuts(blocks, claims, rows)
        spans = [_span(blocks[first:stop], groups, claims) for first, stop in pairwise(cuts)]
        read = sum(piece.group.rows for span in spans for piece in span.pieces)
        if read <= 2 * footer.rows + MAX_GROUP_ROWS and max(map(_waiting, spans)) <= MAX_WAITING_ROWS:
            return spans
    return None


def runs(blocks: Sequence[TruthBlock], rows: int) -> list[tuple[TruthBlock, ...]]:
    """Split blocks into runs of at least ``rows`` rows, except the last."""
    edges = [0]
    total = 0
    for number, block in enumerate(blocks, 1):
        total += block.rows
        if total >= rows:
            edges.append(number)
            total = 0
    if edges[-1] < len(blocks):
        edges.append(len(blocks))
    return [tuple(blocks[first:stop]) for first, stop in pairwise(edges)]


def _job_rows(blocks: Sequence[TruthBlock]) -> int:
    total = sum(block.rows for block in blocks)
    return min(max(total // MIN_JOBS, MIN_JOB_ROWS), MAX_JOB_ROWS)


def _claims(groups: Sequence[RowGroup], events: EventRange) -> Counts:
    """First and last event and number of rows of each group, shape (groups, 3).

    Events are clipped to the range, so that every row group belongs to a job.
    """
    lowest, highest = events.start, events.stop - 1
    claims = [
        (min(max(group.first or 0, lowest), highest), min(max(group.last or 0, lowest), highest), group.rows)
        for group in groups
    ]
    return np.array(claims, np.int64).reshape(-1, 3)


def _cuts(blocks: Sequence[TruthBlock], claims: Counts, job_rows: int) -> list[int]:
    """Indices of blocks where jobs begin: about every ``job_rows``, where the fewest rows straddle."""
    straddling = _straddling(blocks, claims)
    done = np.cumsum([0, *(block.rows for block in blocks)])
    cuts = [0]
    while done[-1] - done[cuts[-1]] > 1.25 * job_rows:
        low, high = np.searchsorted(done, done[cuts[-1]] + np.array([0.75, 1.25]) * job_rows)
        low = max(int(low), cuts[-1] + 1)
        candidates = np.arange(low, min(max(int(high), low + 1), len(blocks)))
        if not len(candidates):
            break
        cuts.append(int(candidates[np.argmin(straddling[candidates])]))
    return [*cuts, len(blocks)]


def _straddling(blocks: Sequence[TruthBlock], claims: Counts) -> Counts:
    """For each block, the rows of row groups that straddle its beginning."""
    edges = np.array([block.events.start for block in blocks])
    steps = np.zeros(len(edges) + 1, np.int64)
    np.add.at(steps, np.searchsorted(edges, claims[:, 0], side="right"), claims[:, 2])
    np.subtract.at(steps, np.searchsorted(edges, claims[:, 1], side="right"), claims[:, 2])
    return np.cumsum(steps)


def _span(blocks: Sequence[TruthBlock], groups: Sequence[RowGroup], claims: Counts) -> Span:
    """The span of these blocks; ``groups`` are sorted by first event."""
    start, stop = blocks[0].events.start, blocks[-1].events.stop
    touching = np.flatnonzero((claims[:, 0] < stop) & (claims[:, 1] >= start))
    pieces = tuple(
        Piece(groups[number], bool(claims[number, 0] >= start), bool(claims[number, 1] < stop))
        for number in touching.tolist()
    )
    return Span(tuple(blocks), pieces)


def _waiting(span: Span) -> int:
    """The maximum number of rows in memory while the span is streamed."""
    maximum = waiting = 0
    open_groups: list[tuple[int, int]] = []
    for piece, complete_below in span.steps():
        waiting += piece.group.rows
        maximum = max(maximum, waiting)
        heappush(open_groups, (piece.group.last or 0, piece.group.rows))
        while open_groups and open_groups[0][0] < complete_below:
            waiting -= heappop(open_groups)[1]
    return maximum


@dataclass(frozen=True, slots=True)
class PlanRequest(FooterRequest):
    """A file to inspect, and the blocks of its truth."""

    blocks: tuple[TruthBlock, ...] = ()
    job_rows: int | None = None

    @property
    def events(self) -> EventRange | None:
        return EventRange(self.blocks[0].events.start, self.blocks[-1].events.stop) if self.blocks else None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan to score a file."""

    rows: int
    groups: tuple[RowGroup, ...]
    #: The spans to stream; None if the file must be sorted by event first.
    spans: tuple[Span, ...] | None


def make_plan(request: PlanRequest) -> tuple[Plan | None, list[Problem]]:
    """Inspect a file and plan how to score it, in a worker; returns the problems of its footer."""
    footer, problems = inspect(request)
    if footer is None:
        return None, problems
    spans = plan(request.blocks, footer, request.job_rows)
    return Plan(footer.rows, footer.groups, None if spans is None else tuple(spans)), []
