"""What the jets task promises: truth, metrics by hand, problems of bad rows, and that tricks cost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from collidium.contracts.task import Block, EventRange, UnusableTruth
from collidium_tasks.jets.card import places_of

from .events import FLAVOURS, TASK, Probabilities, block, predictions, truth

NOTHING = {"btag_auc": 0.5, "light_rejection_70": 1 / 0.7, "c_rejection_70": 1 / 0.7}
#: Copies of the few jets by hand with which rejections rest on enough jets that pass.
MANY = 200


def jets_of(flavours: tuple[tuple[int, ...], ...] = FLAVOURS) -> list[tuple[int, int]]:
    return [(event, jet) for event, of in enumerate(flavours, 1) for jet in range(len(of))]


def metrics(
    rows: dict[tuple[int, int], Probabilities], times: int = 1, **options: pa.DataType
) -> dict[str, float]:
    return TASK.metrics(TASK.merge([TASK.score(block(rows, **options))] * times))


# -- truth ----------------------------------------------------------------------------------------------


def test_truth_is_a_row_for_each_jet() -> None:
    table = truth()["jets"]
    assert table.schema == pa.schema(
        [("event_id", pa.uint32()), ("jet_id", pa.uint16()), ("flavour", pa.uint8())]
    )
    assert table.column("flavour").to_pylist() == [flavour for of in FLAVOURS for flavour in of]
    assert list(zip(*(table.column(n).to_pylist() for n in ("event_id", "jet_id")), strict=True)) == jets_of()


def test_jets_may_be_in_any_order() -> None:
    table = pa.table({"event_id": [1], "jet_id": [[2, 0, 1]], "flavour": [[0, 5, 4]]})
    assert TASK.prepare({"jets": table})["jets"].column("flavour").to_pylist() == [5, 4, 0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"event_id": [1], "jet_id": [[0]]}, "lacks flavour"),
        ({"event_id": [1], "pt": [[20.0]]}, "lacks jet_id, flavour"),
        ({"event_id": [1, 2], "jet_id": [[0], [0]], "flavour": [[5], None]}, "column flavour: has nulls"),
        ({"event_id": [1], "jet_id": [[0, 1]], "flavour": [[5, None]]}, "column flavour: must be integers"),
        ({"event_id": [1], "jet_id": [[0]], "flavour": [[5.0]]}, "column flavour: must be integers"),
        ({"event_id": [1], "jet_id": [[0]], "flavour": [[15]]}, "column flavour: 15 is not 5, 4 or 0"),
        ({"event_id": [1], "jet_id": [[70000]], "flavour": [[5]]}, "70000 is not from 0 to 65535"),
        ({"event_id": [1], "jet_id": [[0, 1]], "flavour": [[5]]}, "differ in length"),
        ({"event_id": [7], "jet_id": [[3, 3]], "flavour": [[5, 0]]}, "jet 3 appears twice in event 7"),
        ({"event_id": [2, 2], "jet_id": [[0], [0]], "flavour": [[5], [5]]}, "without repetitions"),
    ],
)
def test_unusable_truth(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(UnusableTruth, match=message):
        TASK.prepare({"jets": pa.table(columns)})


@pytest.mark.parametrize("baseline", ["impact", "deepsets"])
def test_baselines_name_the_columns_that_they_lack(baseline: str) -> None:
    ids = {"event_id": pa.array([0], pa.uint32())}
    tracks = pa.table(ids | {name: [[0.1]] for name in ("d0", "z0", "phi", "theta", "qop")})
    jets = pa.table(ids | {"jet_id": [[0]], "eta": [[0.1]]})
    with pytest.raises(UnusableTruth, match="table jets lacks pt, phi, mass"):
        TASK.baselines()[baseline]({"jets": jets, "tracks": tracks})


# -- metrics by hand ------------------------------------------------------------------------------------

#: Three b jets, two of charm, five light ones, so that 70% of b jets are 2.1 of them.
GIVEN: dict[tuple[int, int], Probabilities] = {
    (1, 0): (0.8, 0.1, 0.1),  # b
    (1, 1): (0.1, 0.1, 0.8),
    (1, 2): (0.5, 0.0, 0.5),
    (2, 0): (0.6, 0.2, 0.2),  # b
    (2, 1): (0.6, 0.4, 0.0),  # c
    (4, 0): (0.2, 0.2, 0.6),
    (4, 1): (0.1, 0.8, 0.1),  # c
    (4, 2): (0.4, 0.2, 0.4),  # b
    (4, 3): (0.3, 0.1, 0.6),
    (5, 0): (0.0, 1.0, 0.0),
}


def test_metrics_by_hand() -> None:
    """b jets win against 7, 6½ and 5 of 7 others.

    Against light ones they have 8/9, 3/4 and 1/2, and these 1/9, 1/2, 1/4, 1/3 and, of nothing, 1/2. So 2.1 b
    jets pass with a tenth of the two light ones at 1/2: a fifth of five. Against charm they have 8/9, 3/4 and
    2/3, and these 3/5 and 1/9: none passes, and there is no rejection.
    """
    assert metrics(GIVEN, MANY) == {
        "btag_auc": pytest.approx(18.5 / 21, rel=1e-15),
        "light_rejection_70": pytest.approx(25, rel=1e-12),
    }


@pytest.mark.parametrize(("times", "passing"), [(124, 24.8), (125, 25.0)])
def test_a_rejection_needs_25_jets_that_pass(times: int, passing: float) -> None:
    assert ("light_rejection_70" in metrics(GIVEN, times)) == (passing >= 25)


def test_rejection_of_jets_with_equal_scores() -> None:
    """All equal: 70% of the light jets pass with 70% of the b jets."""
    flavours = ((5,) * 10 + (0,) * 40 + (4,) * 50,)
    rows = dict.fromkeys(jets_of(flavours), (0.4, 0.3, 0.3))
    assert TASK.metrics(TASK.score(block(rows, flavours))) == pytest.approx(NOTHING, rel=1e-12)


def test_nothing_in_nothing_is_half() -> None:
    """Light or c jets with probability 0 for b and for their own flavour are where b jets of 1/2 are."""
    rows = dict.fromkeys(jets_of(), (0.5, 0.0, 0.5))
    light = [(1, 1), (1, 2), (4, 0), (4, 3), (5, 0)]
    found = metrics(rows | dict.fromkeys(light, (0.0, 1.0, 0.0)), MANY)
    assert found["light_rejection_70"] == pytest.approx(1 / 0.7)
    rows = dict.fromkeys(jets_of(), (0.5, 0.5, 0.0))
    found = metrics(rows | dict.fromkeys([(2, 1), (4, 1)], (0.0, 0.0, 1.0)), MANY)
    assert found["c_rejection_70"] == pytest.approx(1 / 0.7)


def test_the_best_and_the_worst_answer() -> None:
    best = {
        (e, j): (float(f == 5), float(f == 4), float(f == 0))
        for e, of in enumerate(FLAVOURS, 1)
        for j, f in enumerate(of)
    }
    assert metrics(best, MANY) == {"btag_auc": 1.0}
    worst: dict[tuple[int, int], Probabilities] = {jet: (1 - b, b, 0.0) for jet, (b, _, _) in best.items()}
    assert metrics(worst, MANY) == {"btag_auc": 0.0, "light_rejection_70": 1.0, "c_rejection_70": 1.0}


@pytest.mark.parametrize("flavours", [((5, 5),), ((0, 4),), ((),), ((5, 4),), ((5, 0),)])
def test_without_a_flavour_there_is_no_rejection(flavours: tuple[tuple[int, ...], ...]) -> None:
    rows = dict.fromkeys(jets_of(flavours), (0.4, 0.3, 0.3))
    found = TASK.metrics(TASK.merge([TASK.score(block(rows, flavours))] * 50))
    of = set(flavours[0])
    assert (found["btag_auc"] > 0) == (5 in of and len(of) > 1)
    assert ("light_rejection_70" in found) == ({5, 0} <= of)
    assert ("c_rejection_70" in found) == ({5, 4} <= of)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int8(), pa.uint64()])
def test_numbers_of_any_kind(kind: pa.DataType) -> None:
    rows: dict[tuple[int, int], Probabilities] = dict.fromkeys(jets_of(), (0, 1, 0))
    rows |= {(1, 0): (1, 0, 0), (4, 0): (1, 0, 0), (5, 0): (0, 0, 1)}
    assert metrics(rows, kind=kind)["btag_auc"] == (6.5 + 3 + 3) / 21


# -- what is refused ------------------------------------------------------------------------------------


def test_all_problems_at_once() -> None:
    good = dict.fromkeys(jets_of(), (0.2, 0.3, 0.5))
    assert TASK.check(block(good)) == []
    bad = predictions(
        {(1, 0): (0.2, 0.3, 0.5), (1, 3): (1, 0, 0), (3, 0): (1, 0, 0), (2, -1): (1, 0, 0)}
        | {(2, 2**40): (1, 0, 0), (4, 0): (0.9, 0.9, 0.9), (4, 1): (0.0, 0.0, 0.0)}
    )
    rows = pa.concat_tables([bad, predictions({(1, 0): (1, 0, 0), (4, 1): (0.4, 0.3, 0.3)})]).sort_by(
        "event_id"
    )
    found = {problem.code: problem for problem in TASK.check(Block(EventRange(1, 6), rows, truth()))}
    assert {code: problem.count for code, problem in found.items()} == {
        "unknown-jet": 4,
        "duplicate-row": 2,
        "wrong-sum": 2,
    }
    assert found["unknown-jet"].examples[0] == {"event_id": 1, "jet_id": 3}
    assert found["wrong-sum"].examples[0] == pytest.approx(
        {"event_id": 4, "jet_id": 0, "prob_b": 0.9, "prob_c": 0.9, "prob_light": 0.9}
    )
    assert [problem.column for problem in found.values()] == ["jet_id", "jet_id", "prob_b"]


@pytest.mark.parametrize(
    ("three", "kind", "fine"),
    [
        ((0.34, 0.34, 0.34), pa.float32(), True),
        ((0.34, 0.34, 0.34), pa.float64(), True),
        ((0.3, 0.3, 0.38), pa.float32(), True),
        ((0.3, 0.3, 0.3799), pa.float64(), False),
        ((0.34, 0.34, 0.3401), pa.float32(), False),
        ((0, 1, 0), pa.int8(), True),
        ((1, 1, 0), pa.int8(), False),
    ],
)
def test_probabilities_add_up_to_one_within_two_percent(
    three: Probabilities, kind: pa.DataType, fine: bool
) -> None:
    assert (TASK.check(block({(1, 0): three}, kind=kind)) == []) == fine


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.uint64(), pa.int64()])
def test_jet_ids_of_any_width(kind: pa.DataType) -> None:
    rows = predictions(GIVEN)
    shuffled = rows.take(np.random.default_rng(1).permutation(rows.num_rows)).sort_by("event_id")
    cast = shuffled.set_column(1, "jet_id", shuffled.column("jet_id").cast(kind))
    made = Block(EventRange(1, 6), cast, truth())
    assert TASK.check(made) == []
    assert TASK.metrics(TASK.score(made)) == metrics(GIVEN)


def test_jets_of_events_that_differ_by_65536_are_different() -> None:
    ids = {"event_id": pa.array([4464, 4464 + 2**16], pa.uint32()), "jet_id": pa.array([0, 0], pa.uint16())}
    jets = pa.table(ids)
    assert places_of(jets, jets.take([1, 0])).tolist() == [1, 0]


def test_the_largest_ids_are_unknown_jets() -> None:
    rows = predictions({(1, 0): (1, 0, 0)}).set_column(1, "jet_id", pa.array([2**64 - 1], pa.uint64()))
    (problem,) = TASK.check(Block(EventRange(1, 6), rows, truth()))
    assert (problem.code, problem.examples[0]["jet_id"]) == ("unknown-jet", 2**64 - 1)


# -- what does not pay ----------------------------------------------------------------------------------


def test_jets_that_are_left_out_count_as_a_third_of_each() -> None:
    thirds = dict.fromkeys(jets_of(), (1 / 3, 1 / 3, 1 / 3))
    near: dict[tuple[int, int], Probabilities] = {(1, 1): (0.34, 0.33, 0.33), (2, 1): (0.33, 0.34, 0.33)}
    for kept in ({}, dict(list(GIVEN.items())[:4]), near):
        assert metrics(kept) == metrics(thirds | kept)
    assert metrics({(1, 1): near[1, 1]})["btag_auc"] == 3 / 7, "of 7 others 6 are equal and one is higher"
    assert metrics({(2, 1): near[2, 1]})["btag_auc"] == 4 / 7, "of 7 others 6 are equal and one is lower"
    assert metrics({})["btag_auc"] == 0.5


def test_easy_jets_alone_are_worth_less() -> None:
    """The hard ones left out of a good answer: they count, as if nothing were known of them."""
    flavours = ((5,) * 50 + (0,) * 50,)
    random = np.random.default_rng(2)
    b = np.concatenate([random.beta(4, 2, 50), random.beta(2, 4, 50)])
    rows = {(1, jet): (float(one), 0.0, float(1 - one)) for jet, one in enumerate(b)}
    easy = {jet: three for jet, three in rows.items() if abs(three[0] - 0.5) > 0.3}
    assert 10 < len(easy) < 90
    whole, part = (TASK.metrics(TASK.score(block(of, flavours)))["btag_auc"] for of in (rows, easy))
    assert part < whole


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, -0.0])
def test_tiny_scores_are_ordinary_numbers(tiny: float) -> None:
    rows = dict.fromkeys(jets_of(), (tiny, 1.0, tiny))
    found = metrics(rows, MANY)
    assert found["btag_auc"] == 0.5
    assert found["light_rejection_70"] == pytest.approx(1 / 0.7)
    assert all(np.isfinite(value) and value >= 0 for value in found.values())


def test_missing_jets_give_a_warning() -> None:
    assert TASK.warnings(TASK.score(block(GIVEN))) == []
    (rows,) = TASK.warnings(TASK.score(block(dict(list(GIVEN.items())[:4]))))
    assert rows.startswith("6 of 10 jets were not submitted")


# -- blocks ---------------------------------------------------------------------------------------------


def test_draws_have_all_rejections() -> None:
    """However few jets pass: the error of a rejection needs its value in every draw."""
    tallies = [TASK.score(block(GIVEN))] * 2
    (drawn,) = TASK.resample(tallies, [[0, 1]])
    assert drawn.keys() == {"btag_auc", "light_rejection_70", "c_rejection_70"}


def test_curves_by_hand() -> None:
    """A hundred copies: a third of the b jets are where the c jets are."""
    of = {5: (0.85, 0.1, 0.05), 4: (0.45, 0.45, 0.1), 0: (0.25, 0.05, 0.7)}
    rows = {jet: of[FLAVOURS[jet[0] - 1][jet[1]]] for jet in jets_of()} | {(4, 2): of[4]}
    tally = TASK.merge([TASK.score(block(rows))] * 100)
    found = {curve.name: curve for curve in TASK.curves(tally)}
    assert {name: (list(curve.part), set(curve.whole)) for name, curve in found.items() if "roc" in name} == {
        "roc_btag": ([0, 0, 100], {700}),
        "roc_light": ([0, 0, 0], {500}),
        "roc_c": ([0, 0, 100], {200}),
    }
    response = found["response_b"]
    filled = {
        round(low, 1): (part, whole, events)
        for low, part, whole, events in zip(
            response.edges, response.part, response.whole, response.events, strict=False
        )
        if whole
    }
    # An event has four jets at most.
    assert filled == {0.2: (0, 500, 125), 0.4: (100, 300, 75), 0.8: (200, 200, 50)}
    assert TASK.curves(TASK.merge([])) == []
