"""The card of the task."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Final

from collidium.contracts.task import Card, Column, EventRange, Metric

#: The b efficiency at which rejections are computed.
WORKING_POINT: Final = Fraction(7, 10)
#: Background jets that must pass for a rejection; its error is a fifth with as many.
MIN_PASSING: Final = 25
#: Maximum deviation of the sum of a jet's probabilities from 1.
TOLERANCE: Final = 0.02


def _rejection(name: str, others: str, against: str, events: int) -> Metric:
    return Metric(
        name=name,
        title=f"Rejection of {others} jets at 70% b efficiency",
        higher_is_better=True,
        description=f"Rejection of {others} jets at 70% b efficiency: {others} jets per {others} jet "
        "tagged as b.",
        formula=f"{others} jets / {others} jets that pass where 70% of b jets do, by prob_b / (prob_b + "
        f"{against}), 1/2 where both are 0; the ROC curve is straight within jets of equal discriminant; the "
        "error is that of the logarithm",
        source="after the ATLAS Collaboration, Eur. Phys. J. C 79 (2019) 970, arXiv:1907.05120",
        bounds=(0, inf),
        log_error=True,
        missing_when=f"fewer than {MIN_PASSING} {others} jets pass, as for rejections above "
        f"({others} jets) / {MIN_PASSING}",
        events_needed=events,
    )


CARD: Final = Card(
    name="jets",
    title="Jet flavour tagging",
    description=(
        "Predict for each jet the probabilities that it contains a b hadron, a c hadron but no b hadron, or "
        "neither. Jets are those of the table jets, clustered from calo_hits. b hadrons fly millimetres, so "
        "the tracks near a jet are most informative. All tables of the events may be used."
    ),
    dataset="ttbar_pu0",
    eval_events=EventRange(90_000, 100_000),
    inputs=("jets", "tracks"),
    columns=(
        Column(name="event_id", kind="integer", description="Event of the jet."),
        Column(name="jet_id", kind="integer", description="The jet within its event; each jet at most once."),
        Column(name="prob_b", kind="float", bounds=(0, 1), description="Probability of a b hadron."),
        Column(name="prob_c", kind="float", bounds=(0, 1), description="Probability of a c hadron and no b."),
        Column(
            name="prob_light",
            kind="float",
            bounds=(0, 1),
            description=f"Probability of neither; the three add up to 1, within {TOLERANCE}.",
        ),
    ),
    truth_sources=("jets",),
    rows_of="jets",
    left_out="A jet that is not submitted counts with probability 1/3 for each flavour.",
    metrics=(
        Metric(
            name="btag_auc",
            title="b-tagging area under ROC",
            higher_is_better=True,
            description="Area under the ROC curve of prob_b, b jets against all others.",
            formula="pairs of a b jet and another in which the b jet has the higher prob_b, and half of "
            "those in which both have the same / all such pairs",
            source="J. Hanley and B. McNeil, Radiology 143 (1982) 29",
            bounds=(0, 1),
        ),
        # An event of ttbar has 1.3 light and 0.4 c jets: enough for rejections of 100 and 10.
        _rejection("light_rejection_70", "light", "prob_light", 2000),
        _rejection("c_rejection_70", "c", "prob_c", 600),
    ),
)
