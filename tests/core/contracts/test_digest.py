"""Digests of events depend only on their values, and are additive."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collidium.contracts.digest import MODULUS, event_digests, together

LISTS = st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), min_size=1, max_size=6)


def events(values: list[list[int]], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table(
        {
            "event_id": pa.array(range(len(values)), pa.uint32()),
            "x": pa.array([[number / 8 for number in event] for event in values], pa.list_(pa.float64())),
            "n": pa.array(values, pa.list_(kind or pa.int64())),
        }
    )


def test_a_digest_by_hand() -> None:
    """Fixes the definition of digests for all versions and machines."""
    table = pa.table(
        {
            "x": pa.array([[0.5, -1.0]], pa.list_(pa.float32())),
            "event_id": pa.array([7], pa.uint32()),
            "hit_ids": pa.array([[[3], [], [4, 5]]], pa.list_(pa.list_(pa.uint16()))),
        }
    )
    content = b"".join(
        [
            b"event_id=i" + struct.pack("<q", 7),
            b"hit_ids/0" + struct.pack("<q", 3),
            b"hit_ids/1" + struct.pack("<3q", 1, 0, 2),
            b"hit_ids=i" + struct.pack("<3q", 3, 4, 5),
            b"x/0" + struct.pack("<q", 2),
            b"x=f" + struct.pack("<2d", 0.5, -1.0),
        ]
    )
    expected = int.from_bytes(hashlib.sha256(content).digest()[:8], "little") % 2**63
    assert event_digests(table).tolist() == [expected]


@given(LISTS, st.data())
def test_blocks_and_the_order_of_events_make_no_difference(
    values: list[list[int]], data: st.DataObject
) -> None:
    table = events(values)
    cut = data.draw(st.integers(0, len(values)))
    pieces = [table.slice(cut), table.slice(0, cut)]
    apart = np.concatenate([event_digests(piece) for piece in pieces])
    assert sorted(apart) == sorted(event_digests(table))
    assert together(apart) == together(event_digests(table)) < MODULUS
    parts = np.array([together(event_digests(piece)) for piece in pieces], np.uint64)
    assert together(parts) == together(apart)


@given(LISTS)
def test_how_values_are_stored_makes_no_difference(values: list[list[int]]) -> None:
    table = events(values)
    narrow = events(values, pa.int32())
    large = table.set_column(1, "x", table.column("x").cast(pa.large_list(pa.float64())))
    turned = table.select(["n", "event_id", "x"])
    chunked = pa.concat_tables([table.slice(row, 1) for row in range(table.num_rows)])
    for other in (narrow, large, turned, chunked):
        assert event_digests(other).tolist() == event_digests(table).tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.set_column(2, "n", pa.array([[1, 2], [3, 5]])),
        lambda t: t.set_column(2, "n", pa.array([[1], [2, 3, 4]])),
        lambda t: t.set_column(2, "n", pa.array([[2, 1], [3, 4]])),
        lambda t: t.set_column(2, "n", pa.array([[1.0, 2.0], [3.0, 4.0]])),
        lambda t: t.set_column(0, "event_id", pa.array([1, 0])),
        lambda t: t.rename_columns(["event_id", "x", "m"]),
        lambda t: t.drop_columns(["n"]),
        lambda t: t.slice(0, 1),
    ],
    ids=["a value", "lengths", "order in an event", "floats", "events", "a name", "a column", "an event"],
)
def test_anything_else_makes_a_difference(change: object) -> None:
    assert callable(change)
    table = events([[1, 2], [3, 4]])
    assert together(event_digests(change(table))) != together(event_digests(table))


def test_a_list_that_is_null_is_not_an_empty_one() -> None:
    null, empty = (pa.table({"n": pa.array([value], pa.list_(pa.int8()))}) for value in (None, []))
    assert event_digests(null).tolist() != event_digests(empty).tolist()


def test_all_that_is_not_a_number_is_one() -> None:
    one, other = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    assert np.isnan([one, other]).all()
    assert event_digests(pa.table({"x": [one]})).tolist() == event_digests(pa.table({"x": [other]})).tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([[1, None]]), "column n has nulls"),
        (pa.array(["one"]), "column n holds neither numbers nor lists of them, but string"),
    ],
)
def test_what_has_no_digest(values: pa.Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        event_digests(pa.table({"n": values}))
