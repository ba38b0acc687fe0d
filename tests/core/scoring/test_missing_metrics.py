"""Metrics that may be missing: no rank, no error, and a message to the submitter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import toy_task
from toy_task import EVENTS, Gated, Score, Toy, Undefined

from collidium.client.predictions import write_predictions
from collidium.errors import ScoringFailed
from collidium.scoring.engine import ScoringResult
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.truth.versions import Truth
from collidium.scoring.uncertainty import groups_of, resampled
from collidium.submissions import scores
from collidium.submissions.models import Submission


async def scored(score: Score, directory: Path, right: float) -> ScoringResult:
    """The scores of predictions of which this fraction is right."""
    table = toy_task.items()
    wrong = np.arange(table.num_rows) % 10 >= 10 * right
    values = pa.array(np.where(wrong, -1.0, np.asarray(table["value"])))
    write_predictions(table.set_column(2, "value", values), directory / "p.parquet")
    return await score(directory / "p.parquet", Gated())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_missing_metric_has_no_error_and_gives_no_place(score: Score, tmp_path: Path) -> None:
    good = await scored(score, tmp_path, 0.9)
    assert set(good.metrics) == set(good.uncertainties) == {"accuracy", "missing"}
    assert good.missing == []
    assert scores.rank_score(Gated.card, Submission(scores=good.metrics)) == good.metrics["accuracy"]
    bad = await scored(score, tmp_path, 0.3)
    assert set(bad.metrics) == set(bad.uncertainties) == {"missing"}
    assert bad.missing == [
        "There is no accuracy when less than half is right: the submission has no place on the leaderboard."
    ]
    assert bad.warnings == [], "a dry run reports these, and no score"
    assert scores.rank_score(Gated.card, Submission(scores=bad.metrics)) is None


@pytest.mark.parametrize("how", ["raises", "is nan"])
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_undefined_in_the_final_part_fails_nothing(
    score: Score, truth: Truth, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(toy_task.items(), path)
    public = ScoredTruth("0a").part("public", 50)
    groups = groups_of(truth.events)
    shown = frozenset(groups[number].start for number in public.groups(len(groups)))
    task, everywhere = Undefined(shown, how), Undefined(frozenset(range(EVENTS.start, EVENTS.stop)), how)
    made, plain = [await score(path, one, part=public) for one in (task, everywhere)]
    assert (made.metrics, made.warnings, made.missing) == (plain.metrics, plain.warnings, plain.missing)
    final = await score(path, task, part=public.final)
    assert made.held_back == final
    assert set(final.metrics) == ({"missing"} if how == "is nan" else set())
    assert any("There is no accuracy" in line and "no place" in line for line in final.missing)
    with pytest.raises(ScoringFailed):
        await score(path, Undefined(frozenset(), how), part=public)


def test_a_metric_that_some_resampled_events_lack_has_no_error() -> None:
    tallies = [toy_task.ToyTally(rows=10, right=right, total=10) for right in (4, 7)]
    assert set(resampled(Gated(), tallies)) == {"missing"}
    assert set(resampled(Toy(), tallies)) == {"accuracy", "missing"}
