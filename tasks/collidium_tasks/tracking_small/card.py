"""The card of the task."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Final

from collidium.contracts.task import Column, Metric
from collidium_tasks.tracking import TrackingTask

TRACKING: Final = TrackingTask.card

EFFICIENCY: Final = TRACKING.primary_metric.name

#: Maximum number of parameters of each tier but the last.
TIERS: Final = (10_000, 100_000, 1_000_000)

#: Parts of truth in which nothing was submitted know of no number.
_NO_ROW: Final = "no row was submitted for the events that count"

CARD: Final = replace(
    TRACKING,
    name="tracking_small",
    title="Tracking with few parameters",
    description=(
        f"{TRACKING.description} The fewer parameters the better: say in n_params how many numbers of your "
        "method were fitted to data or chosen for it (weights, biases, cuts, bin widths, resolutions), at "
        "least 1; constants of nature, and what is computed from the event itself, do not count. The "
        "leaderboard goes by efficiency and marks who reaches it with the fewest parameters."
    ),
    columns=(
        *TRACKING.columns,
        Column(
            name="n_params",
            kind="integer",
            description="Parameters of the method, the same in every row.",
            bounds=(1, inf),
            one_per="file",
        ),
    ),
    metrics=(
        replace(TRACKING.primary_metric, reward=30),
        Metric(
            name="n_params",
            higher_is_better=False,
            description="Parameters of the method, as its author counts them.",
            formula="n_params",
            bounds=(1, inf),
            self_reported=True,
            missing_when=_NO_ROW,
        ),
        Metric(
            name="tier",
            higher_is_better=False,
            description="1 for up to 10^4 parameters, 2 for up to 10^5, 3 for up to 10^6, 4 above.",
            formula="1 + how many of 10^4, 10^5 and 10^6 are below n_params",
            bounds=(1, len(TIERS) + 1),
            self_reported=True,
            missing_when=_NO_ROW,
        ),
    ),
    pareto=(EFFICIENCY, "n_params"),
)
