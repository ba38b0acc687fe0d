"""The suite passes a good task, and reports each promise that a faulty one breaks."""

from __future__ import annotations

import sys
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.core.testing import faulty_tasks
from tests.core.testing.faulty_tasks import FAULTS, Good, dataset

from collidium.contracts.task import Column, Tables
from collidium.errors import ConfigurationError
from collidium.testing.conformance import Nonconforming, check_task
from collidium.testing.task_suite import CHECKS, CheckOutcome, Subject, Suite, sample_tables
from collidium_tasks.tracking import TrackingTask


def outcome(task: Good, name: str) -> CheckOutcome:
    """What becomes of one check, after what it stands on."""
    (check,) = [check for check in CHECKS if check.name == name]
    return Suite(Subject(task, dataset()), CHECKS).outcome(check)


def test_a_good_task_passes_and_its_metrics_are_returned() -> None:
    outcomes = list(Suite(Subject(Good(), dataset()), CHECKS))
    assert {outcome.check.name: outcome.detail for outcome in outcomes if outcome.state != "kept"} == {}
    assert check_task(Good(), dataset()) == {"accuracy": 0.4, "missed": 0.6}


def test_checks_of_the_engine_are_not_required_of_tasks() -> None:
    metrics = check_task(faulty_tasks.Demanding(), dataset())
    assert metrics == {"accuracy": 0.4, "missed": 0.6}


@pytest.mark.parametrize("faulty", FAULTS, ids=lambda faulty: faulty.__name__)
def test_a_broken_promise_is_reported_by_the_check_of_it(faulty: type[Good]) -> None:
    result = outcome(faulty(), FAULTS[faulty])
    assert result.state == "broken"
    assert result.detail


def test_every_check_fails_a_bad_task_and_names_its_promise() -> None:
    assert {check.name for check in CHECKS} == set(FAULTS.values())
    assert all(check.promise.endswith(".") for check in CHECKS)


def test_all_promises_that_a_task_breaks_are_reported() -> None:
    with pytest.raises(Nonconforming) as raised:
        check_task(faulty_tasks.Random(), dataset())
    broken = [line.partition(":")[0] for line in str(raised.value).splitlines()]
    assert {"scoring_is_deterministic", "scoring_is_independent_of_blocks"} <= set(broken)
    assert "card_is_complete" not in broken


def test_checks_need_their_foundations() -> None:
    result = outcome(faulty_tasks.WideIds(), "scoring_is_deterministic")
    assert (result.state, result.detail) == ("not checked", "truth_is_well_formed comes first")


def test_a_baseline_cannot_read_the_truth() -> None:
    """Inputs are blinded as those of scored events are published, and are in public order."""
    task = TrackingTask()
    tables = sample_tables(task)
    given = Subject(task, tables).inputs["tracker_hits"]
    assert given["particle_id"].null_count == given.num_rows
    assert given["x"].to_pylist() != tables["tracker_hits"]["x"].to_pylist()
    assert list(map(sorted, given["x"].to_pylist())) == list(
        map(sorted, tables["tracker_hits"]["x"].to_pylist())
    )


def test_promises_broken_by_one_cause_are_one_report() -> None:
    outcomes = list(Suite(Subject(faulty_tasks.DividesAlways(), dataset()), CHECKS))
    (broken,) = [result for result in outcomes if "ZeroDivisionError" in (result.detail or "")]
    same = [result for result in outcomes if result.detail == f"{broken.check.name} has the same cause"]
    assert len(same) > 3
    assert {result.state for result in same} == {"not checked"}


def test_an_unknown_kind_of_column_is_named() -> None:
    with pytest.raises(ValueError, match="column 'n' has the kind 'int': choose integer or float"):
        Column(name="n", kind=cast("Any", "int"), description="A number.")


def test_what_a_task_raises_is_reported_with_its_place() -> None:
    result = outcome(faulty_tasks.BaselineLooksUpTheTruth(), "answers_are_valid")
    assert result.detail is not None
    assert result.detail.startswith("it raises KeyError: 'answers' (faulty_tasks.py:")


def test_hostile_predictions_are_reported_minimised() -> None:
    result = outcome(faulty_tasks.TrustsIds(), "hostile_predictions_never_crash")
    assert result.detail is not None
    assert result.detail.startswith("it raises IndexError")
    assert "; predictions of 1 rows: [{'event_id': 7, " in result.detail


def test_given_predictions_are_scored_instead_of_the_baseline() -> None:
    oracle = Good().oracle(Good().prepare(dataset()))
    assert check_task(Good(), dataset(), oracle) == {"accuracy": 1, "missed": 0}


class Answerless(Good):
    def baselines(self) -> dict[str, object]:
        return {}

    def oracle(self, truth: Tables) -> pa.Table | None:
        return None


def test_a_task_without_baselines_needs_predictions() -> None:
    with pytest.raises(Nonconforming, match="give predictions to score"):
        check_task(Answerless(), dataset())
    nothing = pa.table({"event_id": [7], "item_id": [1], "value": [2.0]})
    assert check_task(Answerless(), dataset(), nothing)["accuracy"] == 0.1


def test_a_missing_table_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="inputs items"):
        check_task(Good(), {"answers": dataset()["answers"]})


def test_checks_need_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'collidium\[test\]'"):
        check_task(Good(), dataset())
