"""Random events: the task must give what the slow reference gives, whatever the cut, order and width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import LONG

from . import reference
from .blocks import TASK, blocks, chunked, dataset, predictions, prepare
from .reference import Hit, Particle, Row, TrueEvent

#: Few, so that particles get several hits; some differ only beyond the 53 bits of a float64.
PARTICLE_IDS = st.sampled_from([0, 0, 1, 2, 3, 5, 2**53, 2**53 + 1, 2**64 - 2, 2**64 - 1])

#: Ids that fit into any width, and ids that need all 64 bits and differ in the last.
SMALL_IDS = st.integers(0, 40)
HUGE_IDS = st.one_of(SMALL_IDS, st.integers(2**63 - 3, 2**63 + 3), st.integers(2**64 - 3, 2**64 - 1))
TRACK_IDS = {
    pa.int8(): st.integers(-1, 5),
    pa.int16(): st.sampled_from([-1, 0, 1, 300, 32767]),
    pa.int32(): st.one_of(st.integers(-1, 4), st.integers(2**31 - 3, 2**31 - 1)),
    pa.int64(): st.one_of(st.integers(-1, 4), st.sampled_from([2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1])),
    pa.uint8(): st.sampled_from([0, 1, 2, 254, 255]),
    pa.uint16(): st.sampled_from([0, 1, 2, 65534, 65535]),
    # The largest of the wide ones are taken for a -1 that wrapped.
    pa.uint32(): st.sampled_from([0, 1, 2**32 - 3, 2**32 - 2]),
    pa.uint64(): st.sampled_from([0, 1, 2**53, 2**53 + 1, 2**64 - 3, 2**64 - 2]),
}
HIT_TYPES = {
    SMALL_IDS: [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()],
    HUGE_IDS: [pa.uint64()],
}


@dataclass(frozen=True)
class Case:
    """Truth, a submission, and how both are stored."""

    truth: dict[int, TrueEvent]
    rows: list[Row]
    weights: bool
    hit_type: pa.DataType
    submitted_hit_type: pa.DataType
    track_type: pa.DataType

    @property
    def tables(self) -> dict[str, pa.Table]:
        return prepare(dataset(self.truth, weights=self.weights, hit_ids=self.hit_type))

    @property
    def predictions(self) -> pa.Table:
        return predictions(self.rows, self.submitted_hit_type, self.track_type)


@st.composite
def true_events(draw: st.DrawFn, ids: st.SearchStrategy[int], weights: bool) -> TrueEvent:
    hit_ids = draw(st.lists(ids, max_size=16, unique=True))
    # Eighths add up without rounding in float64, so equality may be asked for.
    eighths = st.integers(0, 40).map(lambda number: number / 8) if weights else st.just(1.0)
    hits = [Hit(hit_id, draw(PARTICLE_IDS), draw(eighths)) for hit_id in hit_ids]
    listed = draw(st.lists(PARTICLE_IDS.filter(bool), unique=True, max_size=6))
    momenta = st.sampled_from([0.0, 0.5, 1.0, 1.25, 40.0])
    etas = st.sampled_from([-4.0, -3.0, 0.0, 2.9])
    return TrueEvent(
        hits, [Particle(name, draw(momenta), draw(st.booleans()), draw(etas)) for name in listed]
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ids = draw(st.sampled_from([SMALL_IDS, SMALL_IDS, HUGE_IDS]))
    weights = draw(st.booleans())
    track_type = draw(st.sampled_from(list(TRACK_IDS)))
    events = draw(st.lists(st.integers(0, 9), unique=True, max_size=5))
    truth = {event: draw(true_events(ids, weights)) for event in events}
    known = [(event, hit.hit_id) for event in events for hit in truth[event].hits]
    kept = known
    if draw(st.booleans()):
        kept = [place for place in draw(st.permutations(known)) if draw(st.integers(0, 9)) < 8]
    rows = [Row(event, hit, draw(TRACK_IDS[track_type])) for event, hit in kept]
    types = HIT_TYPES[ids]
    return Case(truth, rows, weights, draw(st.sampled_from(types)), draw(st.sampled_from(types)), track_type)


@settings(max_examples=1500 if LONG else 60)
@given(cases())
def test_metrics_equal_the_reference(case: Case) -> None:
    (block,) = blocks(case.tables, case.predictions, [0, 10])
    assert TASK.check(block) == []
    assert TASK.metrics(TASK.score(block)) == reference.metrics(case.truth, case.rows)


@settings(max_examples=500 if LONG else 40)
@given(cases(), st.integers(1, 7))
def test_the_cut_into_blocks_and_chunks_changes_nothing(case: Case, piece: int) -> None:
    truth = {name: chunked(table, piece) for name, table in case.tables.items()}
    submitted = chunked(case.predictions, piece)
    whole, *others = (
        [TASK.score(block) for block in blocks(truth, submitted, cuts)]
        for cuts in ([0, 10], [0, 4, 10], [0, 1, 2, 3, 5, 6, 8, 10])
    )
    for tallies in others:
        assert TASK.merge(tallies).tobytes() == TASK.merge(whole).tobytes()


@settings(max_examples=500 if LONG else 40)
@given(cases(), st.data())
def test_problems_equal_the_reference(case: Case, data: st.DataObject) -> None:
    """Rows of unknown and repeated hits and of negative ids, strewn among good ones."""
    bad_rows = st.builds(
        Row, st.integers(0, 9), st.one_of(st.integers(-3, 45), st.just(2**62)), st.integers(-4, 3)
    )
    good = [row for row in case.rows if row.hit_id < 2**63 and row.track_id < 2**63]
    rows = data.draw(st.permutations(good + data.draw(st.lists(bad_rows, max_size=8))))
    rows = sorted(rows, key=lambda row: row.event_id)
    (block,) = blocks(case.tables, predictions(rows), [0, 10])
    expected = reference.problems(case.truth, rows)
    found = {problem.code: problem for problem in TASK.check(block)}
    assert {code: problem.count for code, problem in found.items()} == {
        code: len(wrong) for code, wrong in expected.items()
    }
    for code, problem in found.items():
        assert problem.examples == tuple(vars(row) for row in expected[code][:5])
        assert problem.event_id == expected[code][0].event_id


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("wide", [False, True], ids=["numbered", "scattered 64-bit"])
def test_an_event_of_many_tracks_and_particles(weights: bool, wide: bool) -> None:
    """So many that labels and particles do not fit into 32 bits together."""
    rng = np.random.default_rng(7)
    particle = rng.integers(0, 2**17, 60_000)
    names = rng.integers(0, 2**62, 30_000) if wide else np.arange(30_000)
    track = np.where(rng.random(len(particle)) < 0.1, -1, names[particle % len(names)])
    weight = rng.integers(0, 80, len(particle)) / 8 if weights else np.ones(len(particle))
    hits = [Hit(*hit) for hit in zip(range(len(particle)), particle.tolist(), weight.tolist(), strict=True)]
    truth = {3: TrueEvent(hits, [Particle(name, 2.0) for name in range(1, 1000)])}
    rows = [Row(3, hit, name) for hit, name in enumerate(track.tolist())]
    (block,) = blocks(prepare(dataset(truth, weights=weights)), predictions(rows), [3, 4])
    assert TASK.check(block) == []
    assert TASK.metrics(TASK.score(block)) == reference.metrics(truth, rows)
