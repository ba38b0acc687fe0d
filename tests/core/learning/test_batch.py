"""Ragged columns and batches, compared with Python lists, and converted to other libraries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collidium.errors import InvalidInput
from collidium.learning import Batch, Ragged, concatenate
from collidium.physics.ragged import ALIGNMENT, from_arrow

LISTS = st.lists(st.lists(st.integers(-1000, 1000), max_size=6), max_size=8)


def ragged(lists: list[list[Any]], kind: pa.DataType | None = None) -> Ragged:
    made = from_arrow(pa.array(lists, pa.list_(kind or pa.int32())))
    assert isinstance(made, Ragged)
    return made


def batch(lists: list[list[int]], first: int = 0) -> Batch:
    values = ragged(lists)
    table = {"x": values, "y": Ragged(values.values * 0.5, values.offsets)}
    return Batch(np.arange(first, first + len(lists)), {"hits": table})


@given(LISTS, st.integers(0, 8), st.integers(0, 8))
def test_slices_are_consecutive_lists(lists: list[list[int]], start: int, stop: int) -> None:
    column = ragged(lists)[start:stop]
    assert [one.tolist() for one in column] == lists[start:stop]
    assert column.offsets[0] == 0
    assert column.event.tolist() == [n for n, one in enumerate(lists[start:stop]) for _ in one]


@given(LISTS)
def test_arithmetic_is_elementwise(lists: list[list[int]]) -> None:
    column = ragged(lists)
    assert [one.tolist() for one in 2 * column + column] == [[3 * value for value in one] for one in lists]
    assert [one.tolist() for one in np.abs(column)] == [list(map(abs, one)) for one in lists]


def test_columns_of_other_lengths_do_not_mix() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        ragged([[1], [2, 3]]) + ragged([[1, 2], [3]])
    with pytest.raises(TypeError):
        ragged([[1], [2]]) + np.array([1, 2])


@given(LISTS, st.integers(0, 7))
def test_padding_pads_and_cuts(lists: list[list[int]], length: int) -> None:
    padded = batch(lists).padded(length, fill=-7)
    expected = [(one + [-7] * length)[:length] for one in lists]
    assert padded.tables["hits"]["x"].tolist() == expected
    assert padded.tables["hits"]["mask"].tolist() == [
        [place < len(one) for place in range(length)] for one in lists
    ]
    assert padded.cut == {"hits": sum(max(len(one) - length, 0) for one in lists)}


def test_lists_of_lists_cannot_be_padded() -> None:
    nested = from_arrow(pa.array([[[1], [2, 3]]]))
    with pytest.raises(InvalidInput, match="hit_ids"):
        Batch(np.arange(1), {"tracks": {"hit_ids": nested}}).padded(3)


@pytest.mark.parametrize("values", [["a", "b"], [b"a", b"b"], [datetime(2027, 1, 1)], [time(12)]], ids=repr)
@pytest.mark.parametrize("convert", [lambda batch: batch.padded(3), Batch.to_jax, Batch.to_awkward])
def test_columns_without_numbers_are_named(convert: Callable[[Batch], Any], values: list[Any]) -> None:
    made = Batch(np.arange(1), {"tracks": {"label": from_arrow(pa.array([values]))}})
    if isinstance(values[0], datetime) and convert is Batch.to_awkward:
        assert len(convert(made)["tracks", "label"][0]) == 1
    else:
        with pytest.raises(InvalidInput, match=r"column (tracks\.)?label holds no numbers"):
            convert(made)


@given(LISTS.filter(len), LISTS.filter(len))
def test_batches_are_concatenated(one: list[list[int]], other: list[list[int]]) -> None:
    both = concatenate([batch(one), batch(other, len(one))])
    assert both.event_id.tolist() == list(range(len(one + other)))
    assert [values.tolist() for values in both["x"]] == one + other
    assert both["hits"] is both.tables["hits"]
    assert both["hits.x"].offsets is both["y"].offsets


def test_unknown_names_raise_key_errors() -> None:
    for name in ("z", "tracks", "tracks.d0"):
        with pytest.raises(KeyError):
            batch([[1]])[name]


LOADED = [[1, 2, 3], [], [4, 5]]


def test_jax_shares_memory() -> None:
    import jax

    made = concatenate([batch(LOADED), batch(LOADED, 3)])  # of two pieces: in memory of its own
    tree = made.to_jax()
    assert tree["hits"]["x"].tolist() == [1, 2, 3, 4, 5] * 2
    values = made["x"].values
    assert values.ctypes.data % ALIGNMENT == 0
    assert tree["hits"]["x"].unsafe_buffer_pointer() == values.ctypes.data
    assert tree["hits"]["offsets"].tolist() == made["x"].offsets.tolist()
    assert isinstance(made.padded(2).to_jax()["hits"]["mask"], jax.Array)


def test_jax_rejects_ids_that_need_64_bits() -> None:
    ids = ragged([[2**60]], pa.uint64())
    with pytest.raises(InvalidInput, match="particle_id needs 64 bits"):
        Batch(np.arange(1), {"hits": {"particle_id": ids}}).to_jax()


def test_awkward_has_a_list_of_records_by_table() -> None:
    import awkward

    nested = from_arrow(pa.array([[[1], [2, 3]], [], [[]]]))
    made = Batch(np.arange(3), {"hits": batch(LOADED).tables["hits"], "tracks": {"hit_ids": nested}})
    array = made.to_awkward()
    assert array.hits.x.tolist() == LOADED
    assert array.tracks[0].tolist() == [{"hit_ids": [1]}, {"hit_ids": [2, 3]}]
    flat = awkward.to_numpy(awkward.flatten(array.hits.x))
    assert np.shares_memory(flat, made["hits.x"].values)
