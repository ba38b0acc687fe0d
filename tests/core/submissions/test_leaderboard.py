"""Leaderboards: ranks, selections, Pareto fronts and histories, compared with plain Python."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from tortoise.expressions import F
from toy_task import Toy

from collidium.challenges import arrivals
from collidium.challenges.models import Arrival, Challenge
from collidium.errors import Conflict, InvalidInput
from collidium.records import Place, Result
from collidium.scoring.truth.parts import ScoredTruth
from collidium.submissions import additions, fronts, histories, reading, results
from collidium.submissions import leaderboard as boards
from collidium.submissions.fronts import Fronts
from collidium.submissions.leaderboard import BoardSelection, BoardVersion, Front
from collidium.submissions.models import Submission

pytestmark = pytest.mark.usefixtures("connected")

#: Of accuracy more is better, of missing less.
CARD = replace(Toy.card, name="traded", pareto=("accuracy", "missing"))
VERSION = BoardVersion("traded", "traded", ScoredTruth("truth"), 1)
SUBMISSIONS = 80
START = datetime(2026, 1, 1, tzinfo=UTC)

Wanted = Callable[[Place], bool]


async def fill() -> list[Submission]:
    """In order of time, with ties in scores and in time; some without rank, one of another truth."""
    random = np.random.default_rng(2)
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
            | ({"missing": accuracy / 2 + int(random.integers(8)) / 16} if number % 9 else {}),
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


async def all_pages(selection: BoardSelection, *, limit: int = 3, front: Front | None = None) -> list[Place]:
    """The places on a leaderboard, or on its ``front``, read page by page."""
    whole = await Fronts().of(VERSION, CARD)
    found: list[Place] = []
    cursor = None
    while True:
        options = {"limit": limit, "cursor": cursor, "selection": selection}
        if front is None:
            page, cursor = await boards.places(VERSION, front=whole, **options)
        else:
            page, cursor = await boards.places_on_front(front, **options)
        found += page
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        (BoardSelection(), lambda place: True),
        (BoardSelection("user3"), lambda place: place.hub_username == "user3"),
        (BoardSelection(model_repo="lab/model1"), lambda place: place.model_repo == "lab/model1"),
        (
            BoardSelection("user1", "lab/model2"),
            lambda place: (place.hub_username, place.model_repo) == ("user1", "lab/model2"),
        ),
        (BoardSelection("unknown"), lambda place: False),
    ],
    ids=["all", "account", "model", "both", "unknown"],
)
async def test_selected_places_have_the_ranks_that_they_have_among_all(
    selection: BoardSelection, wanted: Wanted
) -> None:
    rows = await fill()
    everybody = await all_pages(BoardSelection(all=True), limit=100)
    assert [(place.submission_id, place.rank) for place in everybody] == by_hand(in_order(rows))
    expected = [place for place in everybody if wanted(place)]
    every = replace(selection, all=True)
    assert await all_pages(every) == expected
    assert await all_pages(every, front=await Fronts().of(VERSION, CARD)) == [
        place for place in expected if place.pareto
    ]
    participants = by_hand([row for row in in_order(rows) if row.represents])
    assert len(participants) == 5
    ids = {place.submission_id for place in expected}
    found = [(place.submission_id, place.rank) for place in await all_pages(selection)]
    assert found == [place for place in participants if place[0] in ids]


async def test_all_places_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises if other events count before all are read."""
    monkeypatch.setattr(results, "CHUNK", 7)

    rows = await fill()
    challenge = Challenge(name=VERSION.challenge, task=VERSION.task, truth_version="truth")
    await challenge.save(force_create=True)
    taken = [row.id for row in rows if row.rank_score is None]
    await Submission.filter(id__in=taken[::2]).update(standing="withdrawn")
    await Submission.filter(id__in=taken[1::2]).update(standing="disqualified")
    for every in (True, False):
        some = [chunk async for chunk in results.everything(VERSION, intervals=None, every=every)]
        assert max(map(len, some)) == (7 if every else 5)
        places = await all_pages(BoardSelection(all=every), limit=100)
        expected = [
            Result.of(place, rank=None if place.baseline else place.rank, status="ranked") for place in places
        ]
        found = [one for chunk in some for one in chunk]
        assert found[: len(expected)] == expected
        without = [(one.submission_id, one.rank) for one in found[len(expected) :]]
        assert sorted(without) == ([(id_, None) for id_ in sorted(taken)] if every else [])
    challenge.truth_version = "other"
    await challenge.save()
    with pytest.raises(Conflict):
        _ = [chunk async for chunk in results.everything(VERSION, intervals=None, every=True)]


async def test_every_submission_without_rank_says_why() -> None:
    rows = {row.id: row for row in await fill()}
    await Challenge.create(name=VERSION.challenge, task=VERSION.task, truth_version=VERSION.truth_version)
    ranked = {place.submission_id for place in await all_pages(BoardSelection(all=True), limit=100)}
    nothing_installed = SimpleNamespace(tasks=SimpleNamespace(things={}))
    listed = await reading.list_submissions(nothing_installed, limit=100)
    assert {sent.submission_id for sent in listed if sent.unranked is None} == ranked
    for sent in listed:
        if sent.unranked is not None:
            old = rows[sent.submission_id].truth_version == "other"
            why = "scored against an older truth, other" if old else "no score of the primary metric"
            assert sent.unranked == why


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] >= other[1]


coordinate = st.integers(0, 4).map(float)


@given(st.lists(st.tuples(coordinate, coordinate), max_size=15))
def test_the_front_is_what_nothing_dominates(points: list[tuple[float, float]]) -> None:
    wanted = [
        place for place, point in enumerate(points) if not any(dominates(other, point) for other in points)
    ]
    assert fronts.front(points) == wanted


@pytest.mark.parametrize("pareto", [("accuracy", "beauty"), ("accuracy", "accuracy"), ("accuracy",), ()])
def test_a_card_trades_two_metrics_that_it_has(pareto: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="pareto names two metrics of the card"):
        replace(Toy.card, pareto=pareto)


async def test_the_front_is_that_of_the_whole_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "CHUNK", 7)  # a small leaderboard is read in several chunks
    await fill()
    everybody = await all_pages(BoardSelection(all=True))
    scores = {
        place.submission_id: (place.scores["accuracy"], -place.scores.get("missing", inf))
        for place in everybody
    }
    wanted = {
        id_
        for id_, point in scores.items()
        if point[1] > -inf and not any(dominates(other, point) for other in scores.values())
    }
    assert 2 < len(wanted) < SUBMISSIONS / 2
    assert {place.submission_id for place in everybody if place.pareto} == wanted
    assert await Fronts().of(VERSION, Toy.card) is None
    plain, _ = await boards.places(VERSION, limit=100)
    assert {place.pareto for place in plain} == {None}


async def test_rescoring_between_pages_of_a_front_drops_its_places() -> None:
    await fill()
    front = await Fronts().of(VERSION, CARD)
    whole = await all_pages(BoardSelection(all=True), front=front)
    assert len(whole) > 5
    for lost in (whole[-1:], whole[2:3], whole[:3], whole):  # the last of all, of a page, a page, and all
        ids = {place.submission_id for place in lost}
        await Submission.filter(id__in=ids).update(rank_score=None)
        whole = [place for place in whole if place.submission_id not in ids]
        assert await all_pages(BoardSelection(all=True), front=front) == whole


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", 1), ("missing", -1)])
async def test_the_history_of_a_best_is_who_was_better_than_all_before(metric: str, sign: int) -> None:
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


async def test_the_history_of_an_empty_leaderboard_is_empty() -> None:
    assert await histories.Histories().steps(VERSION, CARD, None, limit=10) == []


async def test_an_unknown_metric_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="no metric 'beauty'; it has accuracy"):
        await histories.Histories().steps(VERSION, CARD, "beauty", limit=10)


async def test_files_of_killed_processes_are_forgotten() -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    for name, until in (("killed", moment - timedelta(days=1)), ("alive", moment + timedelta(seconds=1))):
        await Arrival.create(id=name, challenge="tracking", leased_until=until)
    await arrivals.prune(moment)
    assert await Arrival.all().values_list("id", flat=True) == ["alive"]


# -- after changes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_histories_and_fronts_follow_any_change(seed: int) -> None:
    """After additions, removals, new scores and changes of the challenge they are as if computed anew."""
    await Challenge.create(name=VERSION.challenge, task=VERSION.task, truth_version="truth")
    kept, traded, random = histories.Histories(), Fronts(), np.random.default_rng(seed)
    for number in range(60):
        for _ in range(int(random.integers(1, 4))):
            await _change(number, random)
            number += 100
        revision = (await Challenge.get(name=VERSION.challenge)).revision
        version = replace(VERSION, revision=revision)
        for metric in ("accuracy", "missing"):
            found = await kept.steps(version, CARD, metric, limit=1000)
            assert found == await histories.Histories().steps(version, CARD, metric, limit=1000)
        front = await traded.of(version, CARD)
        anew = await Fronts().of(version, CARD)
        assert front is not None
        assert anew is not None
        assert list(front.items()) == list(anew.items())


async def _change(number: int, random: np.random.Generator) -> None:
    """A change and its revision, as of a submission or an operator; rarely with a clock that was set back."""
    sent = [row for row in await Submission.all() if row.rank_score is not None]
    kinds = ["add", "leave", "return", "remove", "rescore", "none"]
    kind = random.choice(kinds, p=[0.6, 0.2, 0.05, 0.05, 0.05, 0.05])
    if kind == "add":
        await _add(number, random)
        return
    if sent and kind == "leave":
        # One, or all of an account, with the revision of the change.
        some = random.choice(len(sent), size=min(len(sent), int(random.integers(1, 3))), replace=False)
        revision = (await Challenge.get(name=VERSION.challenge)).revision + 1
        left = Submission.filter(id__in=[sent[place].id for place in some])
        await left.update(rank_score=None, left_revision=revision)
    elif kind == "return":
        for row in await Submission.filter(rank_score=None, left_revision__not_isnull=True).limit(1):
            await Submission.filter(id=row.id).update(rank_score=row.scores["accuracy"])
    elif sent and kind != "none":
        row = sent[int(random.integers(len(sent)))]
        new = None if kind == "remove" else row.rank_score
        scores = {"accuracy": row.rank_score, "missing": int(random.integers(8)) / 8}
        await Submission.filter(id=row.id).update(rank_score=new, scores=scores)
    await Challenge.filter(name=VERSION.challenge).update(revision=F("revision") + 1)


async def _add(number: int, random: np.random.Generator) -> None:
    late = 5000 if random.random() < 0.02 else 0
    accuracy = int(random.integers(30)) / 30
    await Submission.create(
        id=uuid.UUID(int=int(random.integers(1, 2**62))).hex,
        challenge=VERSION.challenge,
        task=VERSION.task,
        account_id=1,
        hub_username="ann",
        participant="account:1",
        standing="practice" if number % 11 == 0 else "ranked",
        baseline=number % 7 == 0,
        sha256=f"{number:064}",
        size_bytes=1,
        rows=1,
        scores={"accuracy": accuracy}
        | ({} if number % 9 == 0 else {"missing": accuracy / 2 + int(random.integers(8)) / 16}),
        rank_score=None if number % 11 == 0 else accuracy,
        scorer_version="1",
        truth_version="other" if number % 13 == 0 else "truth",
        submitted_at=START + timedelta(minutes=number // 100 + number % 100 * 100 - late),
    )
    await Challenge.filter(name=VERSION.challenge).update(revision=F("revision") + 1)


async def test_many_additions_are_read_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions, "MAX_ADDED", 2)
    await Challenge.create(name=VERSION.challenge, task=VERSION.task, truth_version="truth")
    random, found = np.random.default_rng(1), []
    await _add(100, random)
    mark = await additions.mark(VERSION.challenge)
    assert mark is not None
    for number in range(2, 5):
        await _add(number * 100, random)
        added = await additions.since(VERSION.challenge, mark)
        found.append(None if added is None else len(added.rows))
    assert found == [1, 2, None]
