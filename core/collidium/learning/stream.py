"""Streams of batches from a dataset: ordered or shuffled, for distributed training, resumable.

Splits into training and validation are defined on the dataset's card.

A share of an epoch is a range of its permuted row groups, cut by events: shares differ by one event at most,
and a group at a cut is decoded twice. Shuffling mixes within a buffer of row groups decoded together, not a
reservoir: the order follows from seed, epoch and share, so a state is an epoch and a count, and resuming
decodes one buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.access import Events, Source, catalogue, download, event_range
from collidium.datasets.cards import SPLITS, split_card
from collidium.datasets.loading import Columns, columns_by_table
from collidium.datasets.reading.shards import EventTable
from collidium.errors import InvalidInput, UnusableDataset
from collidium.hub.sources import locate
from collidium.learning.batch import Batch, ColumnReader, JoinedTables, Pool
from collidium.physics.ragged import Integers

#: Decoded bytes within which events are shuffled.
BUFFER_BYTES: Final = 64 * 1024**2
#: Inverse of the distance, as a fraction of a share, by which a worker's share may be moved to a row group.
_NEAR: Final = 8


@dataclass(frozen=True, slots=True)
class _Options:
    """The options that determine the order of events."""

    shuffle: bool
    seed: int
    rank: int
    world: int
    worker: int
    workers: int
    equal: bool
    buffer_bytes: int

    @property
    def part(self) -> int:
        return self.rank * self.workers + self.worker

    def problems(self, batch: int) -> Iterator[str]:
        for name, value, limit in (("rank", self.rank, self.world), ("worker", self.worker, self.workers)):
            if not 0 <= value < limit:
                raised = {"rank": "world", "worker": "workers"}[name]
                yield f"{name} is from 0 to below {raised} ({limit}), not {value}"
        if batch < 1:
            yield f"a batch has at least one event, not {batch}"
        if self.seed < 0:
            yield f"seed is not negative, not {self.seed}"


#: Some events of a unit: its number, and the first and last position in its order.
_Segment = tuple[int, int, int]


class EventStream:
    """Batches of events from a directory or a hub. Each iteration is an epoch.

    Every event occurs exactly once per epoch, in one worker of one rank. The shares of ranks differ by at
    most one event. Workers of a rank get whole row groups if their shares then differ by less than a quarter,
    because a shared row group is decoded twice. Shuffled epochs differ from each other, and are reproducible
    with the same ``seed``: row groups have a random order, and events a random order within ``buffer_bytes``.

    The current and the next pool of decoded events each take at most ``buffer_bytes``, divided by
    ``workers``, or one row group of the largest table if that is more. In addition, one row group of each
    other table and 8 bytes per event and table are in memory.

    Parameters
    ----------
    source, config, endpoint, revision, token, cache
        As for :func:`~collidium.datasets.download`, which downloads the shards before the first batch.
    tables
        Name of one table, or several. The first defines the events; others have empty lists for missing ones.
    columns
        Canonical names of columns, by table if there are several; default: all.
    events
        For example ``"0:1000"``, or ``"train"`` or another split of the dataset's card; default: all.
    batch
        Number of events in a batch; the last of an epoch may have fewer.
    shuffle, seed
        Whether epochs are shuffled, and the seed.
    rank, world
        Index of this process and number of processes in distributed training.
    worker, workers
        Index and number of loaders in this process; :class:`collidium.learning.torch.EventDataset` sets them.
    equal
        Give all shares the same number of events. An epoch then lacks fewer than ``world * workers`` events,
        which differ between shuffled epochs.
    buffer_bytes
        Size of the pool in which events are shuffled.

    Raises
    ------
    InvalidInput
        If arguments contradict each other.
    CollidiumError
        On first use, as :func:`~collidium.datasets.load`.

    Examples
    --------
    >>> from collidium.demo import EVENTS_DIRECTORY
    >>> stream = EventStream(EVENTS_DIRECTORY, None, "tracker_hits", ["x", "y"], batch=2)
    >>> [(batch.event_id.tolist(), len(batch["x"])) for batch in stream]
    [([0, 1], 2), ([2, 3], 2), ([4], 1)]
    """

    def __init__(
        self,
        source: Source,
        config: str | None = None,
        tables: str | Sequence[str] = "tracker_hits",
        columns: Columns = None,
        events: Events = None,
        *,
        batch: int = 64,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        worker: int = 0,
        workers: int = 1,
        equal: bool = False,
        buffer_bytes: int = BUFFER_BYTES,
        endpoint: str | None = None,
        revision: str | None = None,
        token: str | None = None,
        cache: Path | None = None,
    ) -> None:
        self.batch = batch
        self._options = _Options(shuffle, seed, rank, world, worker, workers, equal, buffer_bytes)
        names = [tables] if isinstance(tables, str) else list(dict.fromkeys(tables))
        self._columns = columns_by_table(columns, names[0] if len(names) == 1 else names)
        problems = list(self._options.problems(batch))
        if not names:
            problems.append("a stream has at least one table")
        if other := [name for name in self._columns if name not in names]:
            problems.append(f"columns of {', '.join(other)}: no table of the stream")
        if problems:
            raise InvalidInput("; ".join(problems))
        self._names = names
        self._source, self._config, self._events = source, config, events
        self._access: dict[str, Any] = {"endpoint": endpoint, "revision": revision, "token": token}
        self._cache = cache
        self._epoch = self._position = self._resumed = 0

    def share(self, worker: int, workers: int) -> EventStream:
        """Return the stream of one loader of this process, at the beginning of the current epoch."""
        made = copy(self)
        made._options = replace(self._options, worker=worker, workers=workers)  # noqa: SLF001 -- a copy
        made.set_epoch(self._epoch)
        return made

    # -- epochs ---------------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration. A complete iteration increments it."""
        self._epoch, self._position, self._resumed = epoch, 0, 0

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch, which can be serialized as JSON."""
        return {"epoch": self._epoch, "events": self._position, "of": self._identity}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next iteration from a state; the batch size may differ.

        Raises
        ------
        InvalidInput
            If the state is of a stream with other events or options.
        """
        of = state["of"]
        if different := [name for name, value in self._identity.items() if of.get(name) != value]:
            raise InvalidInput(f"the state is of a stream with another {', '.join(different)}")
        self._epoch, self._position = int(state["epoch"]), int(state["events"])
        self._resumed = self._position

    @property
    def _identity(self) -> dict[str, Any]:
        ids = sha256(self._opened.ids.tobytes()).hexdigest()[:16]
        return {**asdict(self._options), "events": ids, "columns": self._opened.columns}

    def __len__(self) -> int:
        """The number of batches of the current epoch in this share, which of a worker differs by epoch."""
        return -(-sum(last - first for _, first, last in self._segments(self._epoch)) // self.batch)

    @property
    def bytes_per_event(self) -> float:
        """Approximate mean bytes of an event in memory."""
        return self._opened.bytes_per_event

    def __iter__(self) -> Iterator[Batch]:
        epoch, done, self._resumed = self._epoch, self._resumed, 0
        self._position = done
        pools = self._pools(epoch)
        ends = np.cumsum([0, *(sum(last - first for _, first, last in pool) for pool in pools)])
        begin = int(np.searchsorted(ends, done, side="right")) - 1
        rest: Batch | None = None
        for number, (parts, order) in enumerate(self._decoded(epoch, pools, begin), start=begin):
            if number == begin:
                order = order[done - int(ends[begin]) :]
            if rest is not None:
                parts, order = [rest, *parts], np.concatenate([np.arange(len(rest)), order + len(rest)])
            pool = Pool(parts)
            whole = len(order) if number + 1 == len(pools) else len(order) - len(order) % self.batch
            for start in range(0, whole, self.batch):
                made = pool.take(order[start : min(start + self.batch, whole)])
                self._position += len(made)
                yield made
            rest = pool.take(order[whole:]) if whole < len(order) else None
        self._epoch, self._position = epoch + 1, 0

    def _decoded(
        self, epoch: int, pools: Sequence[Sequence[_Segment]], begin: int
    ) -> Iterator[tuple[list[Batch], Integers]]:
        """Yield pools from ``begin`` on. The next one is decoded in a thread meanwhile."""
        with ThreadPoolExecutor(1, "collidium-decoding") as thread:
            ahead = None
            for number in range(begin, len(pools) + 1):
                ready = ahead
                if number < len(pools):
                    ahead = thread.submit(self._decode, epoch, number, pools[number])
                if ready is not None:
                    yield ready.result()

    # -- which events come when -----------------------------------------------------------------------

    def _segments(self, epoch: int) -> list[_Segment]:
        """The segments of this share: all units in the order of the epoch, cut into equal parts."""
        options, counts = self._options, self._opened.counts
        order = np.arange(len(counts))
        if options.shuffle:
            order = np.random.default_rng([options.seed, epoch]).permutation(order)
        parts, total = options.world * options.workers, int(counts.sum())
        if options.equal:
            total -= total % parts
        starts = np.cumsum(counts[order]) - counts[order]
        begin, end = (self._edge(part, parts, total, starts) for part in (options.part, options.part + 1))
        first, last = (np.clip(edge - starts, 0, counts[order]) for edge in (begin, end))
        chosen = np.flatnonzero(first < last)
        return list(zip(order[chosen].tolist(), first[chosen].tolist(), last[chosen].tolist(), strict=True))

    def _edge(self, part: int, parts: int, total: int, starts: Integers) -> int:
        """The start of a part, which between workers of a rank is moved to a unit that begins near."""
        exact = total * part // parts
        if self._options.equal or part % self._options.workers == 0:
            return exact
        nearest = int(starts[np.abs(starts - exact).argmin()])
        return nearest if abs(nearest - exact) * parts * _NEAR <= total else exact

    def _pools(self, epoch: int) -> list[list[_Segment]]:
        """The segments of each pool, which is decoded at once."""
        segments = self._segments(epoch)
        if not self._options.shuffle:
            return [[segment] for segment in segments]
        pools: list[list[_Segment]] = []
        held = 0.0
        for segment in segments:
            size = self._opened.counts[segment[0]] * self._opened.bytes_per_event
            if not pools or held + size > self._options.buffer_bytes / self._options.workers:
                pools.append([])
                held = 0.0
            pools[-1].append(segment)
            held += size
        return pools

    def _decode(self, epoch: int, number: int, segments: Sequence[_Segment]) -> tuple[list[Batch], Integers]:
        """Decode the units of a pool, and return them with the indices of the pool's events in order."""
        options = self._options
        parts = [self._opened.unit(unit) for unit, _, _ in segments]
        begins = np.cumsum([0, *map(len, parts)])
        orders = []
        for begin, part, (unit, first, last) in zip(begins, parts, segments, strict=False):
            order = np.arange(len(part))
            if options.shuffle:  # the same order in each share of the unit
                order = np.random.default_rng([options.seed, epoch, unit, 1]).permutation(order)
            orders.append(begin + order[first:last])
        order = np.concatenate(orders)
        if options.shuffle:
            order = np.random.default_rng([options.seed, epoch, options.part, number, 2]).permutation(order)
        return parts, order

    @cached_property
    def _opened(self) -> JoinedTables:
        """The tables, downloaded if necessary."""
        events = self._events
        if isinstance(events, str) and ":" not in events:
            splits = read_splits(self._source, self._config, cache=self._cache, **self._access)
            if events not in splits:
                there = ", ".join(splits) or "none: name a range of events, for example 0:1000"
                raise UnusableDataset(f"the dataset's card has no split {events}; there are: {there}")
            events = splits[events]
        wanted = event_range(events)
        fetched = download(self._source, self._config, self._names, wanted, cache=self._cache, **self._access)
        tables = []
        for name in self._names:
            table = EventTable(name, [fetched.directory / path for path in fetched.shards[name]])
            tables.append(ColumnReader(table, self._columns.get(name)))
        return JoinedTables(tables, wanted)


def read_splits(
    source: Source,
    config: str | None = None,
    *,
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    cache: Path | None = None,
) -> dict[str, EventRange]:
    """Read the splits on the card of a dataset.

    Parameters
    ----------
    source, config, endpoint, revision, token, cache
        As for :func:`~collidium.datasets.download`.

    Returns
    -------
    dict of str to EventRange
        ``train`` and ``validation`` in cards of the platform; empty if the card has no splits. Events with
        withheld truth are in no split.

    Raises
    ------
    UnusableDataset
        If the card is invalid.
    CollidiumError
        As :func:`~collidium.datasets.download`.
    """
    with catalogue(locate(source, endpoint=endpoint, revision=revision, token=token), cache) as found:
        chosen = layout.choose(found.sizes, config)
        named: Any = split_card(found.card())[0].get(SPLITS) or {}
    try:
        return {name: EventRange.parse(events) for name, events in (named.get(chosen) or {}).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise UnusableDataset(
            f"the card's {SPLITS} are no ranges of events by config and name: {error}"
        ) from error
