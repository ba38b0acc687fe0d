"""Parts of a job: every event once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collidium.contracts.runner import Job
from collidium.order import Order
from collidium_runners.batch.script import MAX_PARTS, parts


def job_of(events: int) -> Job:
    return Job("r1", Order("ttbar", events, 0), node_seconds=900)


@given(
    events=st.integers(1, 100_000),
    events_per_part=st.integers(1, 100_000),
    max_parts=st.integers(1, 2000),
)
def test_parts_are_exactly_the_job(events: int, events_per_part: int, max_parts: int) -> None:
    job = job_of(events)
    cut = parts(job, events_per_part, max_parts)
    assert cut == parts(job, events_per_part, max_parts)
    assert [part.index for part in cut] == list(range(len(cut)))
    next_event = 0
    for part in cut:
        assert part.first_event == next_event
        assert part.events >= 1
        next_event += part.events
    assert next_event == events
    assert len(cut) <= max_parts
    if len(cut) < max_parts:
        assert max(part.events for part in cut) <= events_per_part


def test_a_job_that_is_never_cut_is_one_part() -> None:
    (part,) = parts(job_of(100_000), 0)
    assert (part.first_event, part.events) == (0, 100_000)


def test_many_events_get_longer_parts_and_none_is_dropped() -> None:
    cut = parts(job_of(100_000), 10)
    assert len(cut) == MAX_PARTS
    assert {part.events for part in cut} == {100}


def test_parts_differ_by_one_event_at_most() -> None:
    assert [part.events for part in parts(job_of(101), 25)] == [21, 20, 20, 20, 20]
