"""Plots of leaderboards: texts, tables and marks of unverified values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from collidium.client import BestStep, EvalEvents, EvaluatedModel, Metric, Place, TaskCard
from collidium_plugins.webapps.charts import Datum
from collidium_plugins.webapps.leaderboard import drawings

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
NOW = BEGIN + timedelta(days=30)
EFFICIENCY = Metric("efficiency", higher_is_better=True, description="")
SPEED = Metric("speed", higher_is_better=True, description="", self_reported=True)
PARAMETERS = Metric("n_params", higher_is_better=False, description="", self_reported=True)
STEPS = [
    BestStep("1" * 32, "anna", BEGIN, 0.5, uncertainty=0.012),
    BestStep("2" * 32, "bea", BEGIN + timedelta(days=9), 0.75, verified_at=NOW),
]
CARD = TaskCard(
    name="small",
    title="Small",
    description="",
    dataset="ttbar",
    eval_events=EvalEvents(0, 2),
    inputs=(),
    columns=(),
    metrics=(EFFICIENCY, PARAMETERS),
    primary_metric="efficiency",
    scorer_version="1",
    accepts_submissions=True,
    pareto=("efficiency", "n_params"),
)


def test_a_history_has_a_text_and_a_table() -> None:
    drawing = drawings.history(EFFICIENCY, STEPS, NOW)
    assert drawing.text == (
        "The last 2 steps lead from 0.500 ± 0.012 (anna, 2026-03-01) to 0.7500 (error unknown) "
        "(bea, 2026-03-10)."
    )
    assert drawing.rows == [
        ("2026-03-10", "bea", "0.7500 (error unknown)"),
        ("2026-03-01", "anna", "0.500 ± 0.012"),
    ]
    assert drawing.plot is not None
    assert drawing.plot.y_name == "efficiency ↑"
    assert [len(mark.bars) for mark in drawing.plot.marks] == [1, 0]
    assert not drawing.has_doubtful
    # The line holds the last best value until now.
    corners = [tuple(map(float, corner.split(","))) for corner in drawing.plot.line.split()]
    assert corners[-1][0] > drawing.plot.marks[-1].x
    assert corners[-1][1] == drawing.plot.marks[-1].y


def test_one_step_is_text_and_not_drawn() -> None:
    drawing = drawings.history(EFFICIENCY, STEPS[:1], NOW)
    assert drawing.text == "One step so far: 0.500 ± 0.012 (anna, 2026-03-01)."
    assert drawing.plot is None
    reported = drawings.history(SPEED, STEPS[:1], NOW).text
    assert reported.endswith("(anna, 2026-03-01) (self-reported, not verified).")


def test_a_score_that_is_always_zero_has_no_axis_below_it() -> None:
    drawing = drawings.history(EFFICIENCY, [replace(step, value=0.0, uncertainty=0.0) for step in STEPS], NOW)
    assert drawing.plot is not None
    assert drawing.plot.y_ticks[0].label == "0"
    assert all(mark.y == drawing.plot.bottom for mark in drawing.plot.marks)


def test_self_reported_values_are_hollow_until_verified() -> None:
    drawing = drawings.history(SPEED, STEPS, NOW)
    assert drawing.plot is not None
    assert [mark.kind for mark in drawing.plot.marks] == ["doubtful", ""]
    assert [row[2] for row in drawing.rows] == ["0.7500", "0.500 ± 0.012 (self-reported, not verified)"]
    assert drawing.has_doubtful


def place(rank: int, efficiency: float | None, parameters: float | None, *, pareto: bool) -> Place:
    scores = {"efficiency": efficiency, "n_params": parameters}
    return Place(rank, f"{rank:032}", f"user-{rank}", BEGIN, scores, Decimal(0), pareto=pareto)


def test_a_front_joins_its_own_points_alone() -> None:
    on_front = [place(1, 0.9, 10_000, pareto=True), place(3, 0.6, 100, pareto=True)]
    beaten, lacking = place(2, 0.8, 20_000, pareto=False), place(4, 0.5, None, pareto=False)
    drawing = drawings.front(CARD, on_front, [on_front[0], beaten, on_front[1], lacking])
    assert drawing.plot is not None
    assert [mark.kind for mark in drawing.plot.marks] == ["front", "other", "front"]
    assert len(drawing.plot.line.split()) == 3, "two points and the corner between them"
    assert drawing.plot.x_name == "n params ↓"
    assert [tick.label for tick in drawing.plot.x_ticks] == ["100", "1,000", "10,000", "10⁵"]
    assert drawing.rows == [
        ("1", "user-1", "0.9000 (error unknown)", "10,000"),
        ("3", "user-3", "0.6000 (error unknown)", "100"),
    ]


def test_models_are_drawn_by_what_they_cost() -> None:
    """Size is drawn where the card does not trade it already, speed where it was measured."""
    places = [
        replace(place(rank, score, None, pareto=False), model=EvaluatedModel("", 1, size, 1, 17, **speed))
        for rank, score, size, speed in (
            (1, 0.9, 300, {"seconds": 0.5, "seconds_error": 0.02}),
            (2, 0.8, 400, {}),
            (3, 0.7, 100, {"seconds": 0.6, "seconds_error": 0.03}),
        )
    ]
    sized, timed = drawings.of_models(replace(CARD, pareto=None), [*places, place(4, 1.0, 1, pareto=True)])
    assert sized.plot is not None
    assert [mark.kind for mark in sized.plot.marks] == ["front", "other", "front"]
    assert sized.rows == [
        ("1", "user-1", "0.9000 (error unknown)", "300"),
        ("3", "user-3", "0.7000 (error unknown)", "100"),
    ]
    assert timed.plot is not None
    assert [len(mark.bars) for mark in timed.plot.marks] == [1, 1]
    assert timed.rows == [("1", "user-1", "0.9000 (error unknown)", "0.500 ± 0.020")]
    assert [drawing.id for drawing in drawings.of_models(CARD, places)] == ["front-seconds"]


@pytest.mark.parametrize("days", [0, 1, 400])
def test_the_axis_says_the_day_where_its_ticks_do_not(days: int) -> None:
    steps = [replace(STEPS[0], submitted_at=NOW - timedelta(days=days)), replace(STEPS[1], submitted_at=NOW)]
    plot = drawings.history(EFFICIENCY, steps, NOW).plot
    assert plot is not None
    assert plot.x_name == ("UTC" if days == 400 else "UTC, 31 Mar 2026")


@pytest.mark.parametrize(("values", "logarithmic"), [((0.001, 0.01, 0.4), True), ((0.0, 0.01, 0.4), False)])
def test_background_efficiencies_have_a_logarithmic_axis(
    values: tuple[float, ...], logarithmic: bool
) -> None:
    data = [Datum(x, y, y_error=0.002) for x, y in enumerate(values)]
    scale = drawings._of_fractions(data)
    assert scale.logarithmic is logarithmic
    assert scale.fraction(0.402) <= 1
