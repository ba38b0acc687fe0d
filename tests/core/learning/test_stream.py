"""Streams yield each event once and unchanged, in any distribution over processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import LONG

from collidium.errors import InvalidInput, UnusableDataset
from collidium.learning import Batch, EventStream
from collidium.testing.processes import ending_with_parent

EVENTS = range(5, 52)
COLUMNS = {"tracker_hits": ["x", "particle_id"], "tracks": ["d0", "hit_ids"]}


def hits(events: Sequence[int]) -> pa.Table:
    """Event ``n`` has ``n % 4`` hits."""
    return pa.table(
        {
            "event_id": pa.array(events, pa.uint32()),
            "tx": pa.array([[n + 0.25] * (n % 4) for n in events], pa.list_(pa.float32())),
            "particle_id": pa.array([[2**60 + n] * (n % 4) for n in events], pa.list_(pa.uint64())),
        }
    )


def tracks(events: Sequence[int]) -> pa.Table:
    """Event ``n`` has ``n % 3`` tracks, the last of them with no hit."""
    ids = [[list(range(place)) for place in reversed(range(n % 3))] for n in events]
    return pa.table(
        {
            "event_id": pa.array(events, pa.uint32()),
            "d0": pa.array([[float(n)] * (n % 3) for n in events], pa.list_(pa.float32())),
            "hit_ids": pa.array(ids, pa.list_(pa.list_(pa.uint32()))),
        }
    )


def write(directory: Path, name: str, table: pa.Table, per_shard: int, per_group: int) -> None:
    folder = directory / "data" / f"ttbar_pu0_{name}"
    folder.mkdir(parents=True)
    starts = range(0, table.num_rows, per_shard)
    for number, start in enumerate(reversed(starts)):  # the later events in the earlier files
        path = folder / f"train-{number:05}-of-{len(starts):05}.parquet"
        pq.write_table(table.slice(start, per_shard), path, row_group_size=per_group)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hits in groups of 5 events, tracks of 7; some events have no tracks, some tracks no hits."""
    made = tmp_path_factory.mktemp("events")
    write(made, "tracker_hits", hits(EVENTS), 20, 5)
    write(made, "tracks", tracks([n for n in range(60) if n % 11]), 30, 7)
    return made


def stream(directory: Path, **options: Any) -> EventStream:
    return EventStream(directory, None, ["tracker_hits", "tracks"], COLUMNS, **{"batch": 8} | options)


def every_share(directory: Path, shares: tuple[int, int], **options: Any) -> list[EventStream]:
    world, workers = shares
    return [
        stream(directory, **options, rank=rank, world=world, worker=worker, workers=workers)
        for rank in range(world)
        for worker in range(workers)
    ]


def listed(batch: Batch, number: int) -> list[Any]:
    """One event of a batch as Python has it."""
    track_hits = batch["tracks.hit_ids"][number]
    return [
        int(batch.event_id[number]),
        batch["tracker_hits.x"][number].tolist(),
        batch["tracker_hits.particle_id"][number].tolist(),
        batch["tracks.d0"][number].tolist(),
        [ids.tolist() for ids in track_hits],
    ]


def contents(batches: Any) -> list[list[Any]]:
    return [listed(batch, number) for batch in batches for number in range(len(batch))]


def ids(batches: Any) -> list[int]:
    return [int(event) for batch in batches for event in batch.event_id]


def plainly(event: int) -> list[Any]:
    has = event % 11 != 0
    of_hits, of_tracks = hits([event]).to_pylist()[0], tracks([event]).to_pylist()[0]
    found = (of_tracks["d0"], of_tracks["hit_ids"]) if has else ([], [])
    return [event, of_hits["tx"], of_hits["particle_id"], *found]


#: How many ranks, each with how many workers.
SHARES = st.sampled_from([(1, 1), (1, 2), (2, 3), (7, 1), (1, 7), *([(5, 4), (7, 7)] if LONG else [])])
OPTIONS = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 60),
        "shuffle": st.booleans(),
        "seed": st.integers(0, 3),
        "buffer_bytes": st.sampled_from([1, 300, 10**6]),
    }
)


@settings(max_examples=300 if LONG else 8)
@given(SHARES, OPTIONS)
def test_shares_hold_every_event_once_as_it_is(
    directory: Path, shares: tuple[int, int], options: dict[str, Any]
) -> None:
    """In two epochs; shares of ranks differ by one event at most, batches are full."""
    parts = every_share(directory, shares, **options)
    for _ in range(2):
        lengths = [len(part) for part in parts]
        epochs = [list(part) for part in parts]
        assert [len(batches) for batches in epochs] == lengths
        sizes = [[len(batch) for batch in batches] for batches in epochs]
        assert all(size == options["batch"] for of in sizes for size in of[:-1])
        of_ranks = np.reshape([sum(of) for of in sizes], shares)
        assert np.ptp(of_ranks.sum(axis=1)) <= 1
        events = contents(chain(*epochs))
        assert sorted(events) == [plainly(event) for event in EVENTS]
        if not options["shuffle"]:
            assert [event for event, *_ in events] == list(EVENTS)


@settings(max_examples=300 if LONG else 5)
@given(SHARES, OPTIONS)
def test_equal_shares_have_one_size(
    directory: Path, shares: tuple[int, int], options: dict[str, Any]
) -> None:
    parts = list(map(ids, every_share(directory, shares, **options, equal=True)))
    assert {len(part) for part in parts} == {len(EVENTS) // len(parts)}
    assert len(set(chain(*parts))) == len(EVENTS) // len(parts) * len(parts)


def test_shuffled_epochs_differ_and_can_be_repeated(directory: Path) -> None:
    one = stream(directory, shuffle=True, seed=4)
    first, second = (ids(one) for _ in range(2))
    assert first != second != list(EVENTS) != first
    one.set_epoch(0)
    assert ids(one) == first
    other = stream(directory, shuffle=True, seed=5)
    assert ids(other) != first


def test_shuffling_separates_neighbours(directory: Path) -> None:
    """Within the buffer events of several row groups mix."""
    assert np.mean(np.abs(np.diff(ids(stream(directory, shuffle=True)))) == 1) < 0.2


def test_workers_get_whole_row_groups(directory: Path) -> None:
    """A group that two share is decoded twice: 24 events of 47 are 5 groups but for one event."""
    first, second = (ids(stream(directory, worker=worker, workers=2)) for worker in range(2))
    assert (first, second) == (list(EVENTS[:25]), list(EVENTS[25:]))
    halves = [ids(stream(directory, worker=worker, workers=2, equal=True)) for worker in range(2)]
    assert [len(half) for half in halves] == [23, 23]


def test_workers_share_the_buffer(directory: Path) -> None:
    """Of memory, and of the time until the first batch."""
    half = int(stream(directory).bytes_per_event * len(ids(stream(directory))) / 2)
    one = stream(directory, shuffle=True, buffer_bytes=half)
    assert len(one.share(0, 2)._pools(0)) >= len(one._pools(0)) > 1


@settings(max_examples=300 if LONG else 12)
@given(SHARES, OPTIONS, st.integers(0, 60), st.integers(1, 20))
def test_a_state_resumes_in_another_stream(
    directory: Path, shares: tuple[int, int], options: dict[str, Any], taken: int, batch: int
) -> None:
    """With other batches, too; an epoch goes on into the next one."""
    one = every_share(directory, shares, **options)[-1]
    every = contents(one) + contents(one)
    one.set_epoch(0)
    given_out: list[list[Any]] = []
    for _, batch_of_one in zip(range(taken), one, strict=False):
        given_out += contents([batch_of_one])
    other = every_share(directory, shares, **options | {"batch": batch})[-1]
    other.load_state_dict(one.state_dict())
    assert (
        given_out + contents(other) + ([] if other.state_dict()["epoch"] == 2 else contents(other)) == every
    )


def test_an_interrupted_epoch_starts_again(directory: Path) -> None:
    one = stream(directory, batch=10)
    next(iter(one))
    assert ids(one) == list(EVENTS)


KILLED = """
import json, sys
from collidium.learning import EventStream

one = EventStream(sys.argv[1], None, ["tracker_hits", "tracks"], shuffle=True, seed=7, batch=4)
for batch in one:
    print(json.dumps([batch.event_id.tolist(), one.state_dict()]), flush=True)
    sys.stdin.readline()
"""


def test_a_killed_process_resumes(directory: Path) -> None:
    """From the state that it wrote after a batch, in another process."""
    seen: list[int] = []
    with subprocess.Popen(
        ending_with_parent([sys.executable, "-c", KILLED, str(directory)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(5):
            events, state = json.loads(process.stdout.readline())
            seen += events
            process.stdin.write("\n")
            process.stdin.flush()
        process.kill()

    def again(**options: Any) -> EventStream:
        return EventStream(directory, None, ["tracker_hits", "tracks"], shuffle=True, seed=7, **options)

    rest = again(batch=3)
    rest.load_state_dict(state)
    assert len(seen) == 20
    assert seen + ids(rest) == ids(again())


def test_the_state_of_another_stream_is_rejected(directory: Path) -> None:
    state = stream(directory, shuffle=True, seed=1).state_dict()
    with pytest.raises(InvalidInput, match=r"another seed, world, events"):
        stream(directory, events="5:20", shuffle=True, seed=2, world=2).load_state_dict(state)


def test_arguments_are_checked_all_at_once(directory: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        stream(directory, batch=0, rank=2, world=2, worker=-1, seed=-1)
    for name in ("batch", "rank", "worker", "seed"):
        assert name in str(error.value)


@pytest.mark.parametrize(
    ("tables", "columns", "events", "message"),
    [
        ("tracker_hits", ["w"], None, "no column w"),
        ("tracker_hits", None, "0:20", "0:5 are missing"),
        ("jets", None, None, "no parquet files of table jets"),
        ("tracker_hits", None, "train", "no split train"),
    ],
)
def test_missing_columns_events_and_tables_are_named(
    directory: Path, tables: str, columns: list[str] | None, events: str | None, message: str
) -> None:
    with pytest.raises(UnusableDataset, match=message):
        list(EventStream(directory, None, tables, columns, events))


def test_withheld_columns_are_named(tmp_path: Path) -> None:
    table = hits(range(4)).set_column(2, "particle_id", pa.array([None] * 4, pa.list_(pa.uint64())))
    write(tmp_path, "tracker_hits", table, 4, 4)
    with pytest.raises(UnusableDataset, match="column particle_id: has nulls"):
        list(EventStream(tmp_path))
    assert len(list(EventStream(tmp_path, columns=["x"]))) == 1
