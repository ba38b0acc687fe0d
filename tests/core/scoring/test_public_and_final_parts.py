"""Public and final parts: disjoint, complete, and of the right size."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collidium.scoring.truth.parts import Part, is_public, whole

versions = st.text("0123456789abcdef", min_size=12, max_size=12)
percents = st.integers(1, 99)


@given(versions, percents, st.integers(2, 100))
def test_each_group_is_in_one_part(version: str, percent: int, count: int) -> None:
    public = Part(version, "public", percent)
    chosen, held_back = public.groups(count), public.final.groups(count)
    assert chosen | held_back == set(range(count))
    assert not chosen & held_back
    assert chosen
    assert held_back
    assert abs(len(chosen) - count * percent / 100) <= 1


@given(versions, percents, st.sampled_from(["public", "final"]))
def test_a_part_is_known_by_its_version(version: str, percent: int, kind: str) -> None:
    text = f"{version}-{kind}{percent}"
    part = Part.of(text)
    assert part is not None
    assert (str(part), part.truth, whole(text), is_public(text)) == (text, version, version, kind == "public")


@pytest.mark.parametrize(
    "version", [None, "", "0a1b2c3d4e5f", "truth", "0a-public", "0a-private30", "0a-public300"]
)
def test_a_whole_truth_is_no_part(version: str | None) -> None:
    assert Part.of(version) is None
    assert not is_public(version)
    assert version is None or whole(version) == version
