"""The two look-ups under the metrics, with sizes that force each of their ways."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import LONG

from collidium.contracts.task import Block, EventRange
from collidium_tasks.tracking.bins import OF_PARTICLES
from collidium_tasks.tracking.events import UNKNOWN, have_equal_ids, rows_of_hits
from collidium_tasks.tracking.matching import Buffers, label_tracks

from .blocks import TASK

SIGNED = st.lists(st.one_of(st.integers(-1, 20), st.integers(2**62, 2**62 + 9), st.just(2**63 - 1)))
UNSIGNED = st.lists(st.one_of(st.integers(0, 20), st.integers(2**64 - 9, 2**64 - 1)))


@settings(max_examples=400 if LONG else 40)
@given(
    st.one_of(
        SIGNED.map(lambda ids: np.array(ids, np.int64)), UNSIGNED.map(lambda i: np.array(i, np.uint64))
    ),
    st.sampled_from([3, 30, 1000, 2**20]),
)
def test_labels_are_equal_where_track_ids_are(ids: np.ndarray, limit: int) -> None:
    labels = label_tracks(ids, limit, Buffers())
    unassigned = ids == -1 if ids.dtype == np.int64 else np.zeros(len(ids), np.bool_)
    assert np.array_equal(labels.of_hits == labels.count, unassigned)
    assert (labels.of_hits <= labels.count).all()
    if labels.of_hits.dtype == np.uint32:
        assert labels.count <= limit
    back = labels.track_ids(labels.of_hits[~unassigned].astype(np.uint64))
    assert back.tolist() == ids[~unassigned].tolist()


@pytest.mark.parametrize("tracks", [100, 2_000, 100_000])
def test_labels_of_scattered_ids(tracks: int) -> None:
    rng = np.random.default_rng(tracks)
    ids = rng.choice(rng.integers(0, 2**63 - 1, tracks), 100_000)
    labels = label_tracks(ids, 2**14 - 1, Buffers())
    assert np.array_equal(labels.track_ids(labels.of_hits.astype(np.uint64)), ids.astype(np.uint64))


@settings(max_examples=400 if LONG else 40)
@given(
    st.lists(st.one_of(st.integers(0, 30), st.integers(2**64 - 4, 2**64 - 1)), unique=True),
    st.lists(st.integers(-3, 40)),
)
def test_hits_are_found_where_they_stand(known: list[int], wanted: list[int]) -> None:
    places = rows_of_hits(np.array(known, np.uint64), np.array(wanted, np.int64))
    expected = [known.index(hit) if hit in known else UNKNOWN for hit in wanted]
    assert places.tolist() == expected


@pytest.mark.parametrize("known", [np.int32, np.uint32, np.uint64])
@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_hits_of_other_types_are_compared_by_value(known: type, kind: type) -> None:
    hits = np.arange(1000)
    assert have_equal_ids(hits.astype(known), hits.astype(kind))
    assert not have_equal_ids(hits.astype(known), hits[::-1].astype(kind))
    assert not have_equal_ids(hits.astype(known), hits[1:].astype(kind))
    largest = np.array([np.iinfo(known).max], known)
    assert have_equal_ids(largest, largest.astype(kind)) == (int(largest.astype(kind)[0]) == int(largest[0]))


def test_scattered_ids_in_a_small_event_take_little_memory() -> None:
    """A table as large as the ids allow would take gigabytes."""
    names = np.array([0, 2**31 - 1, 2**62, 5], np.int64)
    truth = {
        "hits": pa.table(
            {
                "event_id": np.zeros(4, np.uint32),
                "hit_id": np.array([0, 2**60, 2**61, 7]),
                "particle": np.ones(4, np.uint32),
                "weight": np.ones(4),
            }
        ),
        "particles": pa.table(
            {
                "event_id": np.zeros(1, np.uint32),
                "particle_id": np.ones(1, np.uint64),
                "hits": np.array([4], np.uint32),
                "high_pt": np.array([True]),
                "accepted": np.array([False]),
                **{name: np.zeros(1, np.uint8) for name in OF_PARTICLES},
            }
        ),
    }
    for tracks in (names, names[:2].repeat(2)):
        submitted = {"event_id": np.zeros(4, np.int64), "hit_id": truth["hits"].column("hit_id")}
        block = Block(EventRange(0, 1), pa.table({**submitted, "track_id": tracks}).slice(1), truth)
        tracemalloc.start()
        assert TASK.check(block) == []
        TASK.score(block)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20
