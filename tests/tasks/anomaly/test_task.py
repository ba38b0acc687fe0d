"""What the anomaly task promises: truth, metrics by hand, problems of bad rows, and that tricks cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from collidium.contracts.task import EventRange, UnusableTruth
from collidium_tasks.anomaly.tally import SIGNALS as NAMES

from .events import CHANNELS, TASK, block, truth

#: The metrics of all signals together that need no minimum of background.
MAIN = ("auroc", "signal_efficiency_fpr1")


def main(found: dict[str, float]) -> dict[str, float]:
    return {name: found[name] for name in MAIN}


def metrics(scores: dict[int, float], **options: pa.DataType) -> dict[str, float]:
    return TASK.metrics(TASK.score(block(scores, **options)))


def scored(score: np.ndarray, channels: list[str]) -> dict[str, float]:
    events = np.arange(1, len(channels) + 1)
    finite = np.isfinite(score)
    return TASK.metrics(
        TASK.score(block(dict(zip(events[finite].tolist(), score[finite].tolist(), strict=True)), channels))
    )


# -- truth ----------------------------------------------------------------------------------------------


def test_truth_holds_the_signal_alone() -> None:
    table = truth()["channels"]
    assert table.column_names == ["event_id", "signal"]
    assert table["event_id"].type == pa.uint32()
    codes = dict(enumerate(table["signal"].to_pylist(), 1))
    assert {event: NAMES[code - 1] for event, code in codes.items() if code} == {2: "zprime", 5: "susy_gmsb"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"event_id": [1], "process": [["ttbar"]]}, "lacks channel"),
        ({"event_id": [1, 2], "channel": [["ttbar"], ["technicolor"]]}, "technicolor"),
        ({"event_id": [1, 2], "channel": [["ttbar"], []]}, "event 2 must have one channel"),
        ({"event_id": [1, 2], "channel": [None, ["zee"]]}, "event 1 must have one channel"),
        ({"event_id": [1, 2], "channel": [["zee"], [None]]}, "None"),
        ({"event_id": [1, 2], "channel": [["zee", "ttbar"], []]}, "event 1 must have one channel"),
        ({"event_id": [2, 2], "channel": [["zee"], ["ttbar"]]}, "without repetitions"),
    ],
)
def test_unusable_truth(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(UnusableTruth, match=message):
        TASK.prepare({"channels": pa.table(columns)})


# -- scores ---------------------------------------------------------------------------------------------


def test_metrics_by_hand() -> None:
    """Signal 2 is above all, signal 5 above two of four ordinary events and equal to one."""
    assert metrics({1: 0.1, 2: 0.9, 3: 0.2, 4: 0.5, 5: 0.5, 6: 0.6}) == {
        "auroc": (4 + 2.5) / 8,
        "signal_efficiency_fpr1": 0.5,
        "auroc_zprime": 4 / 4,
        "auroc_susy_gmsb": 2.5 / 4,
    }


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.int64()])
def test_numbers_of_any_kind(kind: pa.DataType) -> None:
    assert metrics({1: 1, 2: 9, 3: 2, 4: 5, 5: 5, 6: 6}, kind=kind)["auroc"] == 6.5 / 8


def test_one_in_a_hundred_false_positives_is_interpolated() -> None:
    """200 ordinary events of equal score with 8 signals, 2 signals above: 1 % of the way through them."""
    channels = ["ttbar"] * 200 + ["zprime"] * 10
    score = np.array([1.0] * 208 + [2.0] * 2)
    assert scored(score, channels)["signal_efficiency_fpr1"] == pytest.approx(0.2 + 0.8 * 0.01, rel=1e-12)


@pytest.mark.parametrize("channels", [("ttbar",), ("zprime",)])
def test_events_of_one_kind_have_no_score(channels: tuple[str, ...]) -> None:
    tally = TASK.score(block({1: 0.5}, channels))
    assert main(TASK.metrics(tally)) == {"auroc": 0.0, "signal_efficiency_fpr1": 0.0}


def improvement(signal: np.ndarray, background: np.ndarray) -> float:
    """By all thresholds, one by one; what has no score (NaN) is below all if it is signal, else above."""
    below, above = np.nan_to_num(signal, nan=-np.inf), np.nan_to_num(background, nan=np.inf)
    best = 0.0
    for threshold in np.concatenate([signal, background, [np.inf]]):
        passing = np.count_nonzero(above >= threshold)
        if passing >= 25:
            part = np.count_nonzero(below >= threshold) / len(signal)
            best = max(best, part / np.sqrt(passing / len(background)))
    return best


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("digits", [1, 17])
def test_significance_improvement_is_the_best_threshold(missing: float, digits: int) -> None:
    random = np.random.default_rng(digits)
    channels = np.array(["ttbar"] * 300 + ["zprime"] * 40 + ["susy_gmsb"] * 30)
    score = np.round(
        random.normal(size=370) + 1.5 * (channels == "zprime") + (channels == "susy_gmsb"), digits
    )
    score[random.random(370) < missing] = np.nan
    found = scored(score, channels.tolist())
    of = {name: score[channels == name] for name in ("zprime", "susy_gmsb", "ttbar")}
    every = np.concatenate([of["zprime"], of["susy_gmsb"]])
    for name, signal in (("", every), ("_zprime", of["zprime"]), ("_susy_gmsb", of["susy_gmsb"])):
        expected = improvement(signal, of["ttbar"])
        assert found[f"significance_improvement{name}"] == pytest.approx(expected, rel=1e-12), name
    assert "significance_improvement_hidden_valley" not in found


def test_significance_needs_25_background_events() -> None:
    for background, there in ((24, False), (25, True)):
        found = scored(np.arange(background + 1.0), ["ttbar"] * background + ["zprime"])
        assert ("significance_improvement" in found) == there


def test_metrics_of_a_signal_do_not_depend_on_others() -> None:
    channels, honest = mix()
    alone = [channel in ("ttbar", "zmumu", "zee", "zprime") for channel in channels]
    kept = [channel for channel, chosen in zip(channels, alone, strict=True) if chosen]
    whole, part = scored(honest, channels), scored(honest[alone], kept)
    assert whole["auroc_zprime"] == part["auroc_zprime"] == part["auroc"]
    assert whole["significance_improvement_zprime"] == part["significance_improvement"]


# -- what is refused ------------------------------------------------------------------------------------


def test_all_problems_at_once() -> None:
    good = block({1: 0.5, 2: 0.5})
    events = [1, 2, 2, 2, 6, 8, 8, 9]
    rows = pa.table({"event_id": events, "anomaly_score": [0.5] * len(events)})
    found = {
        problem.code: problem
        for problem in TASK.check(replace(good, events=EventRange(1, 10), predictions=rows))
    }
    assert set(found) == {"duplicate-row", "unknown-event"}
    assert (found["duplicate-row"].count, found["duplicate-row"].event_id) == (3, 2)
    assert (found["unknown-event"].count, found["unknown-event"].event_id) == (2, 8)
    assert found["unknown-event"].examples == ({"event_id": 8}, {"event_id": 9})


# -- what does not pay ----------------------------------------------------------------------------------


def mix() -> tuple[list[str], np.ndarray]:
    """A mix of 2,000 events, a fifth of them signals, and an honest answer."""
    random = np.random.default_rng(8)
    channels = random.choice(
        ["ttbar", "zmumu", "zee", "zprime", "hidden_valley"], 2000, p=[0.3, 0.3, 0.2, 0.1, 0.1]
    )
    signal = np.isin(channels, ["zprime", "hidden_valley"])
    return channels.tolist(), random.normal(size=2000) + signal


def test_submitting_only_what_one_is_sure_of_costs() -> None:
    channels, honest = mix()
    whole = scored(honest, channels)
    for sure in (honest > 1.5, honest < -0.5, np.abs(honest) > 1, np.arange(2000) < 1000):
        part = scored(np.where(sure, honest, np.nan), channels)
        assert part["auroc"] < whole["auroc"]
        assert part["signal_efficiency_fpr1"] <= whole["signal_efficiency_fpr1"]


def test_what_is_left_out_is_wrong_by_hand() -> None:
    """A right answer to one of two signals, then to two of four ordinary events: half of the pairs."""
    assert main(metrics({1: 0, 2: 1, 3: 0, 4: 0, 6: 0})) == {"auroc": 0.5, "signal_efficiency_fpr1": 0.5}
    assert main(metrics({1: 0, 2: 1, 5: 1, 6: 0})) == {"auroc": 0.5, "signal_efficiency_fpr1": 0.0}


def test_an_empty_answer_is_worse_than_chance() -> None:
    channels, _ = mix()
    assert main(scored(np.full(2000, np.nan), channels)) == {"auroc": 0.0, "signal_efficiency_fpr1": 0.0}
    assert main(scored(np.zeros(2000), channels)) == {"auroc": 0.5, "signal_efficiency_fpr1": 0.01}


def test_only_the_order_counts() -> None:
    """No scale, no shift and no huge number makes a better score of the same order."""
    channels, honest = mix()
    whole = scored(honest, channels)
    for other in (honest * 1e300, np.exp(honest), np.argsort(np.argsort(honest)).astype(float)):
        assert scored(other, channels) == whole


def test_standard_errors_are_those_of_merged_groups() -> None:
    channels, honest = mix()
    groups = [
        TASK.score(block(dict(enumerate(honest[part].tolist(), 1)), [channels[n] for n in part]))
        for part in np.array_split(np.arange(2000), 10)
    ]
    draws = [[0] * 10, list(range(10)), [1, 1, 2, 3, 5, 5, 5, 8, 8, 9]]
    for draw, made in zip(draws, TASK.resample(groups, draws), strict=True):
        exact = TASK.metrics(TASK.merge([groups[number] for number in draw]))
        assert made == pytest.approx(exact, rel=1e-3)


def test_a_row_takes_nine_bytes_of_a_tally_at_most() -> None:
    tally = TASK.score(block(dict.fromkeys(range(1, 601), 0.25), CHANNELS * 100))
    assert sum(signal.nbytes for signal in tally.signals) + tally.background.nbytes == 600 * 8


def test_each_signal_has_its_curve() -> None:
    tally = TASK.score(block(dict.fromkeys(range(1, 601), 0.25), CHANNELS * 100))
    curves = {curve.name: curve for curve in TASK.curves(tally)}
    assert {name: len(curve.part) for name, curve in curves.items()} == {
        "roc": 10,
        "roc_zprime": 5,
        "roc_susy_gmsb": 5,
    }
    for curve in curves.values():
        middles = np.add(curve.edges[1:], curve.edges[:-1]) / 2
        assert np.divide(curve.part, curve.whole) == pytest.approx(middles), "all have the same score"
        assert curve.errors == pytest.approx(np.sqrt(middles * (1 - middles) / (40 * len(middles))), rel=0.5)
    assert TASK.curves(TASK.merge([])) == []


def test_errors_rest_on_the_events_of_the_signal() -> None:
    sizes = TASK.sample_sizes(TASK.score(block(dict.fromkeys(range(1, 601), 0.25), CHANNELS * 100)))
    assert (sizes["auroc"], sizes["auroc_zprime"]) == (200, 100)
    assert TASK.sample_sizes(TASK.merge([]))["auroc"] == 0
