"""Plans: every event in one job, every row group reported once, bounded memory."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from collidium.contracts.task import EventRange
from collidium.scoring.blocks import MAX_GROUP_ROWS, MAX_WAITING_ROWS, TruthBlock, plan, runs
from collidium.scoring.predictions import Footer, RowGroup

MEBI = 2**20
TRUTH = tuple(TruthBlock(n, EventRange(100 + n, 101 + n), MEBI) for n in range(64))


def footer(rows: int, *claims: tuple[int | None, int | None]) -> Footer:
    groups = tuple(RowGroup(n, rows, first, last) for n, (first, last) in enumerate(claims))
    return Footer(rows * len(claims), groups)


def test_jobs_are_cut_where_no_row_group_straddles() -> None:
    pairs = [(100 + n, 101 + n) for n in range(0, 64, 2)]
    spans = plan(TRUTH, footer(2 * MEBI, *pairs), job_rows=7 * MEBI)
    assert spans is not None
    assert all(span.events.start % 2 == 0 for span in spans)
    assert sum(len(span.pieces) for span in spans) == 32


def test_a_plan_gives_up_where_rows_would_pile_up_in_memory() -> None:
    spans = plan(TRUTH, footer(MEBI, *[(100, 163)] * 8))
    assert spans is not None
    assert len(spans) == 1
    assert plan(TRUTH, footer(MEBI, *[(100, 163)] * 9)) is None


def test_a_plan_rejects_a_row_group_too_large_to_be_decoded() -> None:
    assert plan(TRUTH, footer(MAX_GROUP_ROWS, (100, 103))) is not None
    assert plan(TRUTH, footer(MAX_GROUP_ROWS + 1, (100, 103))) is None


def test_a_plan_gives_up_without_statistics() -> None:
    assert plan(TRUTH, footer(10, (100, 101), (None, None))) is None


def test_runs_hold_all_blocks_in_order() -> None:
    assert [len(run) for run in runs(TRUTH[:7], 3 * MEBI)] == [3, 3, 1]
    assert [len(run) for run in runs(TRUTH[:6], 3 * MEBI)] == [3, 3]


claims = st.lists(
    st.tuples(st.integers(0, 2**64 - 1) | st.integers(95, 170), st.integers(0, 80)).map(
        lambda pair: (pair[0], pair[0] + pair[1])
    ),
    max_size=40,
)


@given(claims, st.integers(1, 5 * MEBI), st.integers(1, 70 * MEBI))
def test_every_event_is_in_one_job_and_every_row_group_once(
    claims: list[tuple[int, int]], rows: int, job_rows: int
) -> None:
    file = footer(rows, *claims)
    spans = plan(TRUTH, file, job_rows)
    if spans is None:
        assert rows * len(claims) > MAX_WAITING_ROWS or rows > MAX_GROUP_ROWS
        return
    assert [block for span in spans for block in span.blocks] == list(TRUTH)
    groups = [piece.group.index for span in spans for piece in span.pieces if piece.is_last]
    assert sorted(groups) == list(range(len(claims)))
    for span in spans:
        read = {piece.group.index for piece in span.pieces}
        for group in file.groups:
            assert group.first is not None
            assert group.last is not None
            holds = group.first < span.events.stop and group.last >= span.events.start
            assert group.index in read or not holds
        firsts = [complete_below for _, complete_below in span.steps()]
        assert firsts[:-1] == sorted(firsts[:-1])
