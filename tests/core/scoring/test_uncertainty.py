"""Standard errors: their size, independence of blocks, and pairing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import sqrt
from pathlib import Path
from typing import ClassVar

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import toy_task
from hypothesis import given
from toy_task import Make, Score, Toy, ToyTally

from collidium.client.predictions import write_predictions
from collidium.contracts.task import Block, Card, EventRange, Metric, Problem, Tables, Task
from collidium.scoring import uncertainty
from collidium.scoring.engine import Seeds
from collidium.scoring.truth.versions import Truth
from collidium.scoring.uncertainty import GROUPS, PUBLIC_SEED, Replicates, by_group, groups_of
from collidium.submissions.scores import published_error
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.tally import EVENT

ranges = st.builds(
    lambda start, size: EventRange(start, start + size), st.integers(0, 500), st.integers(1, 400)
)


class Mean(Task):
    """The mean of one number per event, whose standard error is known."""

    card: ClassVar[Card] = Card(
        name="mean",
        title="Mean",
        description="Say anything.",
        dataset="toy_pu0",
        eval_events=EventRange(0, 1),
        inputs=(),
        columns=Toy.card.columns,
        truth_sources=(),
        rows_of="answers",
        metrics=(Metric(name="mean", higher_is_better=True, description="The mean."),),
    )
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        raise NotImplementedError

    def check(self, block: Block) -> list[Problem]:
        return []

    def score(self, block: Block) -> tuple[float, int]:
        raise NotImplementedError

    def merge(self, tallies: Sequence[tuple[float, int]]) -> tuple[float, int]:
        return sum(total for total, _ in tallies), sum(events for _, events in tallies)

    def metrics(self, tally: tuple[float, int]) -> dict[str, float]:
        return {"mean": tally[0] / tally[1]}


# -- groups ---------------------------------------------------------------------------------------------


@given(ranges)
def test_every_event_is_in_one_group_and_groups_are_of_a_size(events: EventRange) -> None:
    groups = groups_of(events)
    assert (groups[0].start, groups[-1].stop) == (events.start, events.stop)
    assert all(first.stop == second.start for first, second in pairwise(groups))
    assert len(groups) == min(len(events), GROUPS)
    sizes = {len(group) for group in groups}
    assert max(sizes) - min(sizes) <= 1


@given(ranges, st.data())
def test_a_block_is_cut_where_groups_meet_and_no_row_is_lost(events: EventRange, data: st.DataObject) -> None:
    start = data.draw(st.integers(events.start, events.stop - 1))
    span = EventRange(start, data.draw(st.integers(start + 1, events.stop)))
    rows = data.draw(st.lists(st.integers(span.start, span.stop - 1), max_size=30).map(sorted))
    table = pa.table({"event_id": pa.array(rows, pa.int16()), "row": pa.array(range(len(rows)), pa.int32())})
    groups = groups_of(events)
    parts = list(by_group(Block(span, table, {"truth": table}), groups))
    for number, part in parts:
        assert groups[number].start <= part.events.start < part.events.stop <= groups[number].stop
        assert all(event in part.events for event in part.predictions["event_id"].to_pylist())
    assert [(part.events.start, part.events.stop) for _, part in parts] == list(
        pairwise([*(part.events.start for _, part in parts), span.stop])
    )
    for pieces in ([part.predictions for _, part in parts], [part.truth["truth"] for _, part in parts]):
        assert pa.concat_tables(pieces).equals(table)


# -- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", [100, 2500])
def test_the_error_of_a_mean_is_that_of_the_textbooks(events: int) -> None:
    values = np.random.default_rng(5).normal(3, 2, events)
    groups = groups_of(EventRange(0, events))
    tallies = [(float(values[g.start : g.stop].sum()), len(g)) for g in groups]
    errors = uncertainty.standard_errors(uncertainty.resampled(Mean(), tallies))
    assert errors["mean"] == pytest.approx(2 / sqrt(events), rel=0.25)


def test_what_both_owe_to_the_events_cancels_in_a_gain() -> None:
    values = np.random.default_rng(6).normal(3, 2, 100)
    replicates = [
        uncertainty.resampled(Mean(), [(float(value + gain), 1) for value in values])["mean"]
        for gain in (0.0, 0.1)
    ]
    assert uncertainty.standard_error_of_gain(*replicates) == pytest.approx(0, abs=1e-12)
    alone = uncertainty.standard_error_of_gain(replicates[0], ())
    assert alone == uncertainty.standard_errors({"mean": replicates[0]})["mean"] > 0.1


def test_few_events_have_the_error_of_students_interval() -> None:
    """Of five values, 68% intervals are 1.14 standard errors wide on either side."""
    values = [1.0, 2.0, 4.0, 7.0, 11.0]
    error = uncertainty.standard_errors(uncertainty.resampled(Mean(), [(v, 1) for v in values]))["mean"]
    assert error == pytest.approx(1.1416 * np.std(values, ddof=1) / sqrt(5), rel=0.15)
    assert error > 1.05 * np.std(values, ddof=1) / sqrt(5)


def test_a_rare_class_has_the_error_of_few_events() -> None:
    tallies = [(value, 1) for value in np.random.default_rng(7).normal(3, 2, 100).tolist()]
    few, all_of_them = (
        uncertainty.standard_errors(uncertainty.resampled(Mean(), tallies, {"mean": size}))["mean"]
        for size in (5, 1000)
    )
    assert all_of_them == uncertainty.standard_errors(uncertainty.resampled(Mean(), tallies))["mean"]
    assert few / all_of_them == pytest.approx(1.1416 * sqrt(5 / 4), rel=0.02)


def test_few_counts_have_the_error_of_poisson_statistics() -> None:
    def error(counted: int, of: int, scatter: float = 0.0) -> float:
        replicates = {"rate": [0.5 - scatter, 0.5, 0.5 + scatter]}
        return uncertainty.standard_errors(replicates, {"rate": (counted, of)})["rate"]

    assert error(0, 1000) == error(1000, 1000) == pytest.approx(1.148 / 1000)
    assert error(4, 1000) == pytest.approx((2 + 0.6 * 1.148) / 1000)
    assert error(4, 1000, 0.1) == pytest.approx(0.1), "the larger of both"
    assert error(10, 1000) == error(0, 0) == 0
    assert error(0, 1) == 1


class Inverse(Mean):
    """One over the mean, of which the error is that of the logarithm."""

    card = replace(Mean.card, metrics=(replace(Mean.card.metrics[0], log_error=True),))

    def metrics(self, tally: tuple[float, int]) -> dict[str, float]:
        return {"mean": tally[1] / tally[0]}


def test_the_error_of_a_logarithm_is_relative() -> None:
    tallies = [(float(value), 1) for value in np.random.default_rng(8).gamma(0.2, 1, 100)]
    direct, inverse = (uncertainty.resampled(task, tallies)["mean"] for task in (Mean(), Inverse()))
    relative = [np.std(values) / np.mean(values) for values in (direct, inverse)]
    assert relative[1] == pytest.approx(relative[0], rel=0.1)


def test_one_event_alone_has_no_error() -> None:
    assert uncertainty.resampled(Mean(), [(3.0, 1)]) == {}
    assert uncertainty.standard_errors({}) == {}


def test_trackings_own_way_gives_what_merging_gives() -> None:
    rng = np.random.default_rng(7)
    tallies = []
    for group in range(30):
        tally = np.zeros(1 + group % 3, EVENT)
        for name in set(EVENT.names or ()) - {"event_id", "track_ids"}:
            tally[name] = rng.integers(0, 9, tally[name].shape) * (group != 4)
        tallies.append(tally)
    draws = [sorted(rng.integers(0, 30, 30).tolist()) for _ in range(20)] + [[4] * 30]
    task = TrackingTask()
    for own, merged in zip(task.resample(tallies, draws), Task.resample(task, tallies, draws), strict=True):
        assert own == pytest.approx(merged, rel=1e-12)


# -- in the engine --------------------------------------------------------------------------------------


@pytest.mark.asyncio(loop_scope="module")
async def test_errors_do_not_depend_on_jobs_blocks_or_the_file(
    score: Score, make: Make, truth: Truth, tmp_path: Path
) -> None:
    whole = await make(tmp_path)
    table = toy_task.items()
    values = np.where(np.arange(table.num_rows) % 5 == 0, -1.0, np.asarray(table.column("value")))
    table = table.set_column(2, "value", pa.array(values))
    ordered, shuffled = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_predictions(table, ordered)
    pq.write_table(
        table.take(np.random.default_rng(1).permutation(table.num_rows)), shuffled, write_statistics=False
    )
    assert (len(whole.blocks), len(truth.blocks) > 1) == (1, True)
    made = [
        await score(path, against=against, job_rows=job_rows)
        for against, path, job_rows in (
            *((truth, ordered, 1), (truth, ordered, None), (truth, shuffled, None)),
            (whole, ordered, None),
        )
    ]
    assert all(evaluation.replicates == made[0].replicates for evaluation in made)
    assert 0 < made[0].uncertainties["accuracy"] < 0.2
    assert made[0].uncertainties["missing"] == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_seed_changes_errors_and_no_score(score: Score, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    table = toy_task.items()
    values = np.where(np.arange(table.num_rows) % 5 == 0, -1.0, np.asarray(table.column("value")))
    write_predictions(table.set_column(2, "value", pa.array(values)), path)
    public, *secret = [await score(path, seeds=Seeds(seed)) for seed in (PUBLIC_SEED, "a", "a", "b")]
    assert public == await score(path)
    assert all((one.metrics, one.curves) == (public.metrics, public.curves) for one in secret)
    assert secret[0].replicates == secret[1].replicates
    assert len({tuple(one.replicates["accuracy"]) for one in (public, secret[0], secret[2])}) == 3


def test_replicates_of_two_seeds_are_not_paired() -> None:
    values = np.random.default_rng(6).normal(3, 2, 100)
    one, same, other = (
        Replicates(uncertainty.resampled(Mean(), [(float(value), 1) for value in values], None, seed), seed)
        for seed in ("a", "a", "b")
    )
    assert one.error_of_gain("mean", same) == 0
    both = sqrt(2) * one.error_of_gain("mean", None)
    assert one.error_of_gain("mean", other) == pytest.approx(both, rel=0.15)


def test_a_published_error_discloses_no_counts_of_events() -> None:
    """The attack: which counts of single events, with the published sum, have the published error?"""
    whole, counts = 10, (7, 3, 9, 5, 6, 2)
    found = np.array([c for c in product(range(whole + 1), repeat=len(counts)) if sum(c) == sum(counts)])
    (place,) = np.flatnonzero((found == counts).all(axis=1))

    def errors(seed: str) -> np.ndarray:
        draws = np.array(uncertainty._draws(len(counts), seed))
        times = np.array([np.bincount(draw, minlength=len(counts)) for draw in draws])
        scatter = np.std(times @ found.T / whole / len(counts), axis=0, ddof=1)
        tallies = [(count, whole) for count in counts]
        ((_, exact),) = uncertainty.standard_errors(
            uncertainty.resampled(Mean(), tallies, None, seed)
        ).items()
        return scatter * (exact / scatter[place])  # as both are widened alike

    public, secret = errors(PUBLIC_SEED), errors("secret")
    assert np.isclose(public, public[place], rtol=1e-12).sum() == 1, "what was published before"
    assert not np.isclose(public, secret[place], rtol=1e-12)[place], "the draws are not those of the source"
    shown = published_error(float(secret[place]))
    fits = [published_error(float(error)) == shown for error in secret]
    assert sum(fits) > len(found) / 100, "also by the draws themselves"
    # By other draws, errors agree within their accuracy.
    assert np.isclose(public, shown, rtol=0.1).sum() > len(found) / 20


def test_a_merge_counts_every_draw() -> None:
    tallies = [ToyTally(rows=1, right=right, total=1) for right in (0, 1)]
    (metrics,) = Toy().resample(tallies, [[0, 1, 1, 1]])
    assert metrics["accuracy"] == 0.75
