"""Fronts of leaderboards: found with one sort, the same as by comparing everything with everything."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from toy_task import Toy

from collidium import database
from collidium.benchmarks import leaderboard as boards
from collidium.benchmarks.leaderboard import BoardVersion, Front, Fronts
from collidium.benchmarks.models import Submission
from collidium.records import Place

#: Of accuracy more is better, of missing less.
TRADED = replace(Toy.card, name="traded", pareto=("accuracy", "missing"))
VERSION = BoardVersion("traded", "traded", "truth", 1)
PLACES = 60

number = st.integers(0, 4).map(float)


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] >= other[1]


@given(st.lists(st.tuples(number, number), max_size=15))
def test_the_front_is_what_nothing_dominates(points: list[tuple[float, float]]) -> None:
    wanted = [
        place for place, point in enumerate(points) if not any(dominates(other, point) for other in points)
    ]
    assert boards.front(points) == wanted


@pytest.mark.parametrize("pareto", [("accuracy", "beauty"), ("accuracy", "accuracy"), ("accuracy",), ()])
def test_a_card_trades_two_metrics_that_it_has(pareto: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="pareto names two metrics of the card"):
        replace(Toy.card, pareto=pareto)


def test_the_front_is_that_of_the_whole_leaderboard(
    migrated_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "_CHUNK", 7)  # a small leaderboard is read in several chunks
    asyncio.run(compare(migrated_database_url))


async def compare(url: str) -> None:
    async with database.connected(url):
        await fill()
        front = await Fronts().of(VERSION, TRADED)
        assert front is not None
        board = await pages(front=front)
        scores = {
            place.submission_id: (
                place.scores["accuracy"],
                -place.scores.get("missing", float("inf")),
            )
            for place in board
        }
        wanted = {
            id_
            for id_, point in scores.items()
            if point[1] > -float("inf") and not any(dominates(other, point) for other in scores.values())
        }
        assert 2 < len(wanted) < PLACES / 2
        assert {place.submission_id for place in board if place.pareto} == wanted
        on_front = [place for place in board if place.pareto]
        assert await pages(on_front=front) == on_front, "with the ranks that they have among all"
        assert await Fronts().of(VERSION, Toy.card) is None
        assert {place.pareto for place in await pages()} == {None}


def test_rescoring_between_pages_of_a_front_drops_its_places(migrated_database_url: str) -> None:
    asyncio.run(lose_places(migrated_database_url))


async def lose_places(url: str) -> None:
    async with database.connected(url):
        await fill()
        front = await Fronts().of(VERSION, TRADED)
        assert front is not None
        whole = await pages(on_front=front)
        assert len(whole) > 5
        for lost in (whole[-1:], whole[2:3], whole[:3], whole):  # the last of all, of a page, a page, and all
            ids = {place.submission_id for place in lost}
            await Submission.filter(id__in=ids).update(rank_score=None)
            whole = [place for place in whole if place.submission_id not in ids]
            assert await pages(on_front=front) == whole


async def pages(**fronts_by_name: Front) -> list[Place]:
    """The leaderboard, three places at a time."""
    found: list[Place] = []
    cursor = None
    while True:
        if "on_front" in fronts_by_name:
            page, cursor = await boards.places_on_front(fronts_by_name["on_front"], limit=3, cursor=cursor)
        else:
            page, cursor = await boards.places(
                VERSION, limit=3, cursor=cursor, front=fronts_by_name.get("front")
            )
        found += page
        if cursor is None:
            return found


async def fill() -> None:
    """Places with ties in either metric, and some that lack the second one."""
    random = np.random.default_rng(3)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = []
    for place in range(PLACES):
        accuracy = int(random.integers(20)) / 20
        missing = accuracy / 2 + int(random.integers(8)) / 16
        scores = {"accuracy": accuracy, **({"missing": missing} if place % 9 else {})}
        rows.append(
            Submission(
                id=uuid.UUID(int=place + 1).hex,
                challenge=VERSION.challenge,
                task=VERSION.task,
                account_id=1,
                hub_username="someone",
                participant=f"account:{place}",
                represents=True,
                sha256=f"{place:064}",
                size_bytes=1,
                rows=1,
                scores=scores,
                rank_score=accuracy,
                scorer_version="1",
                truth_version=VERSION.truth_version,
                submitted_at=start + timedelta(minutes=place // 2),
            )
        )
    await Submission.bulk_create(rows)
