"""Parts of a leaderboard have the ranks of the whole; its history has the submissions that were the best."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from toy_task import Toy

from collidium import database
from collidium.benchmarks import closing, histories
from collidium.benchmarks import leaderboard as boards
from collidium.benchmarks.leaderboard import BoardVersion, Fronts, Selection
from collidium.benchmarks.models import Arrival, Challenge, Submission
from collidium.benchmarks.submissions import reading
from collidium.errors import Conflict, InvalidInput
from collidium.records import Place

#: Of accuracy more is better, of missing less.
CARD = replace(Toy.card, name="traded", pareto=("accuracy", "missing"))
VERSION = BoardVersion("traded", "traded", "truth", 1)
SUBMISSIONS = 80
START = datetime(2026, 1, 1, tzinfo=UTC)

Wanted = Callable[[Place], bool]


async def fill() -> list[Submission]:
    """In order of time, with ties in scores and in time; some without rank, one of another truth."""
    random = np.random.default_rng(7)
    rows = [
        Submission(
            id=uuid.UUID(int=int(random.integers(1, 2**62))).hex,
            challenge=VERSION.challenge,
            task=VERSION.task,
            account_id=number % 5,
            hub_username=f"user{number % 5}",
            participant=f"account:{number % 5}",
            baseline=number % 7 == 0,
            sha256=f"{number:064}",
            size_bytes=1,
            rows=1,
            scores={"accuracy": (accuracy := int(random.integers(30)) / 30)}
            | ({"missing": int(random.integers(40)) / 40} if number % 4 else {}),
            uncertainties={"accuracy": 0.01} if number % 2 else None,
            rank_score=None if number % 10 == 9 else accuracy,
            model_repo=f"lab/model{number % 3}" if number % 3 else None,
            scorer_version="1",
            truth_version="other" if number == 50 else VERSION.truth_version,
            submitted_at=START + timedelta(minutes=number // 2),
        )
        for number in range(SUBMISSIONS)
    ]
    best: set[str] = set()
    for row in in_order(rows):
        row.represents = row.participant not in best
        best.add(row.participant)
    await Submission.bulk_create(rows)
    return sorted(rows, key=lambda row: (row.submitted_at, row.id))


def in_order(rows: list[Submission]) -> list[Submission]:
    """Those that have a rank, best first."""
    kept = [row for row in rows if row.rank_score is not None and row.truth_version == VERSION.truth_version]
    return sorted(kept, key=lambda row: (-(row.rank_score or 0), row.submitted_at, row.id))


def by_hand(rows: list[Submission]) -> list[tuple[str, int]]:
    """Each with its rank: one more than are better, baselines not counted."""
    return [
        (
            row.id,
            1 + sum(not other.baseline and (other.rank_score or 0) > (row.rank_score or 0) for other in rows),
        )
        for row in in_order(rows)
    ]


async def all_pages(selection: Selection, *, limit: int = 3, on_front: bool = False) -> list[Place]:
    front = await Fronts().of(VERSION, CARD)
    assert front is not None
    found: list[Place] = []
    cursor = None
    while True:
        if on_front:
            page, cursor = await boards.places_on_front(
                front, limit=limit, cursor=cursor, selection=selection
            )
        else:
            page, cursor = await boards.places(
                VERSION, limit=limit, cursor=cursor, front=front, selection=selection
            )
        found += page
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        (Selection(), lambda place: True),
        (Selection("user3"), lambda place: place.hub_username == "user3"),
        (Selection(model_repo="lab/model1"), lambda place: place.model_repo == "lab/model1"),
        (
            Selection("user1", "lab/model2"),
            lambda place: (place.hub_username, place.model_repo) == ("user1", "lab/model2"),
        ),
        (Selection("unknown"), lambda place: False),
    ],
    ids=["all", "account", "model", "both", "unknown"],
)
def test_selected_places_have_the_ranks_that_they_have_among_all(
    migrated_database_url: str, selection: Selection, wanted: Wanted
) -> None:
    async def compare() -> None:
        async with database.connected(migrated_database_url):
            rows = await fill()
            everybody = await all_pages(Selection(all=True), limit=100)
            assert [(place.submission_id, place.rank) for place in everybody] == by_hand(in_order(rows))
            expected = [place for place in everybody if wanted(place)]
            every = replace(selection, all=True)
            assert await all_pages(every) == expected
            assert await all_pages(every, on_front=True) == [place for place in expected if place.pareto]
            participants = by_hand([row for row in in_order(rows) if row.represents])
            assert len(participants) == 5
            ids = {place.submission_id for place in expected}
            found = [(place.submission_id, place.rank) for place in await all_pages(selection)]
            assert found == [place for place in participants if place[0] in ids]

    asyncio.run(compare())


def test_all_places_are_read_some_at_a_time(
    migrated_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not without a word where other events count before all are read."""
    monkeypatch.setattr(boards, "_CHUNK", 7)
    everything = {"intervals": None, "selection": Selection(all=True)}

    async def compare() -> None:
        async with database.connected(migrated_database_url):
            rows = await fill()
            challenge = Challenge(name=VERSION.challenge, task=VERSION.task, truth_version="truth")
            await challenge.save(force_create=True)
            some = [chunk async for chunk in boards.all_places(VERSION, **everything)]
            assert max(map(len, some)) == 7
            found = [(place.submission_id, place.rank) for chunk in some for place in chunk]
            assert found == by_hand(in_order(rows))
            results = [one async for chunk in boards.all_results(VERSION, **everything) for one in chunk]
            expected = [None if one.baseline else rank for one, (_, rank) in zip(results, found, strict=True)]
            assert [one.rank for one in results] == expected
            challenge.truth_version = "other"
            await challenge.save()
            with pytest.raises(Conflict):
                _ = [chunk async for chunk in boards.all_places(VERSION, **everything)]

    asyncio.run(compare())


def test_every_submission_without_rank_says_why(migrated_database_url: str) -> None:
    async def compare() -> None:
        async with database.connected(migrated_database_url):
            rows = {row.id: row for row in await fill()}
            await Challenge.create(
                name=VERSION.challenge, task=VERSION.task, truth_version=VERSION.truth_version
            )
            ranked = {place.submission_id for place in await all_pages(Selection(all=True), limit=100)}
            nothing_installed = SimpleNamespace(tasks=SimpleNamespace(things={}))
            listed = await reading.list_submissions(nothing_installed, limit=100)
            assert {sent.submission_id for sent in listed if sent.unranked is None} == ranked
            for sent in listed:
                if sent.unranked is not None:
                    old = rows[sent.submission_id].truth_version == "other"
                    why = "scored against an older truth, other" if old else "no score of the primary metric"
                    assert sent.unranked == why

    asyncio.run(compare())


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", 1), ("missing", -1)])
def test_the_history_of_a_best_is_who_was_better_than_all_before(
    migrated_database_url: str, metric: str, sign: int
) -> None:
    async def compare() -> None:
        async with database.connected(migrated_database_url):
            best, expected = -float("inf"), []
            for row in await fill():
                value = row.scores.get(metric)
                is_ranked = row.rank_score is not None and row.truth_version == VERSION.truth_version
                if is_ranked and value is not None and sign * value > best:
                    best = sign * value
                    expected.append((row.id, value, (row.uncertainties or {}).get(metric)))
            found = await histories.Histories().steps(VERSION, CARD, metric, limit=100)
            assert [(step.submission_id, step.value, step.uncertainty) for step in found] == expected
            assert len(found) > 3
            assert await histories.Histories().steps(VERSION, CARD, metric, limit=2) == found[-2:]
            if metric == CARD.primary_metric.name:
                assert await histories.Histories().steps(VERSION, CARD, None, limit=100) == found

    asyncio.run(compare())


async def test_the_history_of_an_empty_leaderboard_is_empty(connected: str) -> None:
    assert await histories.Histories().steps(VERSION, CARD, None, limit=10) == []


async def test_an_unknown_metric_is_reported_with_the_known_ones(connected: str) -> None:
    with pytest.raises(InvalidInput, match="no metric 'beauty'; it has accuracy"):
        await histories.Histories().steps(VERSION, CARD, "beauty", limit=10)


async def test_files_of_killed_processes_are_forgotten(connected: str) -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    for name, until in (("killed", moment - timedelta(days=1)), ("alive", moment + timedelta(seconds=1))):
        await Arrival.create(id=name, challenge="tracking", leased_until=until)
    await closing.prune(moment)
    assert await Arrival.all().values_list("id", flat=True) == ["alive"]
