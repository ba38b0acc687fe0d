"""Every promise of a benchmark task, in the order in which they are checked."""

from __future__ import annotations

from typing import Final

from collidium.testing.task_suite.checks import card, hostile, invariance, metrics
from collidium.testing.task_suite.suite import Check

CHECKS: Final = (
    Check(card.card_is_complete, foundation=True),
    Check(card.version_is_a_short_text),
    Check(card.task_is_picklable, foundation=True),
    Check(card.truth_is_well_formed, foundation=True),
    Check(card.truth_is_independent_of_blocks),
    Check(card.answers_are_valid, foundation=True),
    Check(card.answers_are_valid_as_a_whole),
    Check(card.floor_is_independent_of_blocks),
    Check(card.nothing_beats_the_oracle),
    Check(card.oracle_beats_the_floor),
    Check(card.repeated_rows_earn_nothing),
    Check(metrics.metrics_are_finite_and_in_bounds),
    Check(metrics.metrics_measure_something),
    Check(metrics.empty_events_are_scored),
    Check(metrics.resampled_metrics_are_finite),
    Check(invariance.scoring_is_deterministic),
    Check(invariance.scoring_is_independent_of_blocks),
    Check(invariance.scoring_is_independent_of_workers),
    Check(invariance.scoring_is_independent_of_writing),
    Check(invariance.inputs_are_not_changed),
    Check(metrics.tallies_are_small_and_picklable),
    Check(metrics.merging_is_associative),
    Check(metrics.merging_is_commutative),
    Check(metrics.merging_changes_no_tally),
    Check(hostile.problems_are_reported_together),
    Check(hostile.problems_are_independent_of_blocks),
    Check(hostile.hostile_predictions_never_crash),
    Check(invariance.memory_is_bounded_by_the_block),
)
