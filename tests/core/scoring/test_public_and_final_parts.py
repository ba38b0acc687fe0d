"""Public and final parts: disjoint, complete, and of the right size."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collidium.contracts.task import EventRange
from collidium.records import EarlierScores, encode
from collidium.scoring.truth.parts import ScoredTruth

versions = st.text("0123456789abcdef", min_size=12, max_size=12)
percents = st.integers(1, 99)
kinds = st.sampled_from(["public", "final"])


@given(versions, percents, st.integers(2, 100))
def test_each_group_is_in_one_part(version: str, percent: int, count: int) -> None:
    public = ScoredTruth(version).part("public", percent)
    chosen, held_back = public.groups(count), public.final.groups(count)
    assert chosen | held_back == set(range(count)) == ScoredTruth(version).groups(count)
    assert not chosen & held_back
    assert chosen
    assert held_back
    assert abs(len(chosen) - count * percent / 100) <= 1


@given(versions, percents, kinds)
def test_a_part_is_known_by_its_version(version: str, percent: int, kind: str) -> None:
    text = f"{version}-{kind}{percent}"
    part = ScoredTruth(text)
    assert (part, part.whole, part.kind, part.public_percent) == (text, version, kind, percent)
    assert part == ScoredTruth(version).part(kind, percent)
    assert (part.public, part.final) == (f"{version}-public{percent}", f"{version}-final{percent}")
    assert part.held_back == (part.final if kind == "public" else None)


@pytest.mark.parametrize(
    "text", ["", "0a1b2c3d4e5f", "truth", "0a-public", "0a-private30", "0a-public300", "0a-public30~redrawn"]
)
def test_a_whole_truth_is_no_part(text: str) -> None:
    truth = ScoredTruth(text)
    assert (truth, truth.whole, truth.kind, truth.public_percent) == (text, text, None, None)
    assert (truth.public, truth.final, truth.held_back) == (None, None, None)
    assert truth.events_of(EventRange(0, 9)) == [EventRange(0, 9)]


@given(versions, versions, percents, kinds)
def test_a_part_of_another_truth_is_alike(one: str, other: str, percent: int, kind: str) -> None:
    part = ScoredTruth(one).part(kind, percent)
    assert ScoredTruth(other).like(part) == ScoredTruth(other).part(kind, percent)
    assert part.like(ScoredTruth(other)) == one


@given(versions, percents, kinds)
def test_records_and_copies_keep_a_part(version: str, percent: int, kind: str) -> None:
    part = ScoredTruth(version).part(kind, percent)
    copy = pickle.loads(pickle.dumps(part))
    assert (copy, copy.kind, copy.public_percent) == (part, kind, percent)
    record = EarlierScores({}, "1", part, datetime(2027, 1, 1, tzinfo=UTC))
    assert f'"truth_version":"{part}"'.encode() in encode(record)
