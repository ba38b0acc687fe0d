"""Rows of predictions as they are decoded, passed on block by block of whole events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import EventRange, Problem
from collidium.scoring import content
from collidium.scoring.blocks import Span, TruthBlock
from collidium.scoring.reading import PredictionsReader


@dataclass(slots=True)
class Findings:
    """What the rows so far have shown; each row of the file is counted exactly once."""

    rows: int = 0
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class Chunk:
    """Rows sorted by event; no chunk to come has rows of events below ``complete_below``."""

    table: pa.Table
    events: npt.NDArray[Any]
    complete_below: int

    def take(self, stop: int) -> pa.Table:
        """Remove and return the rows of events below ``stop``."""
        count = content.rows_below(self.events, stop)
        taken = self.table.slice(0, count)
        self.table, self.events = self.table.slice(count), self.events[count:]
        return taken


def from_row_groups(reader: PredictionsReader, span: Span, findings: Findings) -> Iterator[Chunk]:
    """Decode the pieces of a span in turn. Raises Unreadable and Disordered."""
    start, stop = span.events.start, span.events.stop
    for piece, complete_below in span.steps():
        rows = reader.read(piece.group)
        if piece.reports:
            findings.rows += rows.dropped
            findings.problems += rows.problems
        first, last = (content.rows_below(rows.events, edge) for edge in (start, stop))
        yield Chunk(rows.table.slice(first, last - first), rows.events[first:last], complete_below)


def from_partitions(paths: Sequence[Path], events: EventRange) -> Iterator[Chunk]:
    """Read all rows of a span that :func:`.partitioning.partition` has put together."""
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            tables.append(stream.read_all())
    if tables:
        table = in_order(tables)
        yield Chunk(table, content.as_numpy(table.column("event_id")), events.stop)


def by_block(
    blocks: Iterable[TruthBlock], chunks: Iterable[Chunk], empty: pa.Table, findings: Findings
) -> Iterator[tuple[TruthBlock, pa.Table]]:
    """Yield each block with its predictions, sorted by event; ``empty`` where it has none."""
    source = iter(chunks)
    waiting: list[Chunk] = []
    complete_below = 0
    for block in blocks:
        stop = block.events.stop
        while complete_below < stop and (chunk := next(source, None)) is not None:
            waiting.append(chunk)
            complete_below = chunk.complete_below
        table = in_order([empty, *(chunk.take(stop) for chunk in waiting)])
        waiting = [chunk for chunk in waiting if len(chunk.events)]
        findings.rows += table.num_rows
        yield block, table


def in_order(pieces: Sequence[pa.Table]) -> pa.Table:
    """One table, sorted by event, of sorted pieces; copied only where these do not follow each other.

    Rows of one event stay in the order of the pieces.
    """
    filled = [piece for piece in pieces if piece.num_rows] or pieces[:1]
    table = pa.concat_tables(filled)
    edges = [piece.column("event_id")[row].as_py() for piece in filled if piece.num_rows for row in (0, -1)]
    if all(edges[number] <= edges[number + 1] for number in range(1, len(edges) - 1, 2)):
        return table
    events = np.concatenate([content.as_numpy(piece.column("event_id")) for piece in filled])
    return table.combine_chunks().take(np.argsort(events, kind="stable"))
