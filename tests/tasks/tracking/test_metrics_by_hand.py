"""One small case for each rule of the metrics, with the answer worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from .blocks import TASK, dataset, metrics, one_block, predictions
from .reference import Hit, Particle, Row, TrueEvent

A, B, C = 10, 20, 30


def event(*particles: int, pt: dict[int, float] | None = None) -> dict[int, TrueEvent]:
    """Event 0 with one hit per entry: its place is its id, its particle the entry (0: noise)."""
    entries = [Particle(particle, momentum) for particle, momentum in (pt or {}).items()]
    return {0: TrueEvent([Hit(place, particle) for place, particle in enumerate(particles)], entries)}


def assigned(*tracks: int) -> list[Row]:
    """The hits of event 0 in order, each with its track."""
    return [Row(0, place, track) for place, track in enumerate(tracks)]


def efficiency(truth: dict[int, TrueEvent], rows: list[Row]) -> float:
    return metrics(truth, rows)["trackml_weighted_efficiency"]


def test_exactly_half_of_the_track_is_enough() -> None:
    assert efficiency(event(A, A, B, 0), assigned(1, 1, 1, 1)) == pytest.approx(2 / 3)


def test_less_than_half_of_the_track_is_a_fake() -> None:
    result = metrics(event(A, A, B, 0, 0), assigned(1, 1, 1, 1, 1))
    assert result["trackml_weighted_efficiency"] == 0
    assert result["fake_rate"] == 1


def test_exactly_half_of_the_particle_is_enough() -> None:
    assert efficiency(event(A, A, A, A), assigned(1, 1, -1, -1)) == 0.5


def test_less_than_half_a_particle_is_dominated_but_not_correct() -> None:
    result = metrics(event(A, A, A), assigned(1, -1, -1))
    assert result["trackml_weighted_efficiency"] == 0
    assert result["fake_rate"] == 0


def test_two_halves_of_a_particle_are_correct_and_a_duplicate() -> None:
    result = metrics(event(*[A] * 8), assigned(1, 1, 1, 1, 2, 2, 2, 2))
    assert result["trackml_weighted_efficiency"] == 1
    assert result["duplicate_rate"] == 1


def test_a_tie_goes_to_the_particle_that_makes_the_track_correct() -> None:
    # A has five hits, so a track with two of them is not correct for A; B's two are all it has.
    truth = event(A, A, A, A, A, B, B)
    assert efficiency(truth, assigned(1, 1, -1, -1, -1, 1, 1)) == pytest.approx(2 / 7)


def test_a_tie_of_two_that_are_correct_goes_to_the_smaller_id() -> None:
    # The weights show whose hits were counted.
    truth = {0: TrueEvent([Hit(0, B, 5.0), Hit(1, B, 5.0), Hit(2, A), Hit(3, A)])}
    assert efficiency(truth, assigned(1, 1, 1, 1)) == pytest.approx(2 / 12)
    # Neither is duplicated, since B does not dominate track 1 as well.
    particles = event(B, B, B, B, A, A, A, A, A, A, A)
    assert metrics(particles, assigned(1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2))["duplicate_rate"] == 0


def test_a_tie_of_two_incorrect_tracks_goes_to_the_smaller_id() -> None:
    truth = event(*[A] * 7, *[B] * 7)
    # Tracks 1 and 2 hold two hits of each: both are A's, and neither is correct.
    result = metrics(truth, assigned(*(1, 1, 2, 2, -1, -1, -1) * 2))
    assert result["trackml_weighted_efficiency"] == 0
    assert result["duplicate_rate"] == 0.5


def test_noise_fills_a_track_but_never_owns_it() -> None:
    result = metrics(event(0, 0, 0, 0), assigned(1, 1, 1, 1))
    assert result == {
        "trackml_weighted_efficiency": 0,
        "fake_rate": 1,
        "duplicate_rate": 0,
        "physics_eff_pt1": 0,
        "double_majority_eff_pt1": 0,
    }


def test_rates_count_tracks_of_at_least_four_hits() -> None:
    # Two tracks of four hits, one of them a fake, and a fake and two duplicates that are too short.
    truth = event(A, A, A, A, 0, 0, 0, 0, 0, A, A, A, A)
    result = metrics(truth, assigned(1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5))
    assert result["fake_rate"] == 0.5
    assert result["duplicate_rate"] == 0


@pytest.mark.parametrize(
    ("owned", "in_track", "particle", "efficiency"),
    [
        (6, 3, Particle(A, 1.5), 1.0),
        (6, 2, Particle(A, 1.5), 0.0),
        (7, 3, Particle(A, 1.5), 0.0),
        (5, 5, Particle(A, 1.5), 0.0),
        (6, 6, Particle(A, 1.5, eta=-3.0), 0.0),
        (6, 6, Particle(A, 1.0), 0.0),
        (6, 6, Particle(A, 1.5, primary=False), 0.0),
    ],
    ids=["half", "less than half", "less than half of an odd number", "few hits", "forward", "pt", "primary"],
)
def test_what_counts_under_double_majority(
    owned: int, in_track: int, particle: Particle, efficiency: float
) -> None:
    hits = [Hit(place, A) for place in range(owned)] + [Hit(20 + place, B) for place in range(6)]
    # B is there, accepted, and never found, but where A does not count.
    entries = [particle, Particle(B, 1.5)] if efficiency else [particle]
    result = metrics({0: TrueEvent(hits, entries)}, assigned(*[1] * in_track))
    assert result["double_majority_eff_pt1"] == efficiency / 2


def test_a_tie_with_noise_goes_to_the_particle() -> None:
    assert efficiency(event(A, A, 0, 0), assigned(1, 1, 1, 1)) == 1


def test_unassigned_hits_are_no_track() -> None:
    result = metrics(event(A, A, B, C), assigned(-1, -1, -1, -1))
    assert set(result.values()) == {0}


def test_hits_not_submitted_count_against_the_submission() -> None:
    # Easy hits alone must not score 1.
    assert efficiency(event(A, A, B, B), assigned(1, 1)[:2]) == 0.5


def test_hits_not_submitted_are_hits_of_their_particle() -> None:
    assert efficiency(event(A, A, A), assigned(1)) == 0


def test_equal_track_ids_in_two_events_are_two_tracks() -> None:
    truth = {0: TrueEvent([Hit(0, A), Hit(1, A)]), 1: TrueEvent([Hit(0, B), Hit(1, B), Hit(2, B)])}
    rows = [Row(0, 0, 7), Row(0, 1, 7), Row(1, 0, 7), Row(1, 1, 7), Row(1, 2, 7)]
    assert efficiency(truth, rows) == 1


def test_an_event_without_predictions_counts() -> None:
    truth = {0: TrueEvent([Hit(0, A)]), 1: TrueEvent([Hit(0, A)], [Particle(A, 5.0)])}
    result = metrics(truth, [Row(0, 0, 1)])
    assert result["trackml_weighted_efficiency"] == 0.5
    assert result["physics_eff_pt1"] == 0


def test_event_ids_in_fewer_bits_than_the_truth_needs() -> None:
    # 300 is 44 in eight bits: the rows of event 44 must not serve for event 300 too.
    truth = {44: TrueEvent([Hit(0, A)]), 300: TrueEvent([Hit(0, A)])}
    block = one_block(dataset(truth), predictions([Row(44, 0, 1)], event_ids=pa.int8()))
    assert TASK.check(block) == []
    assert TASK.metrics(TASK.score(block))["trackml_weighted_efficiency"] == 0.5


def test_weights_count_and_those_of_noise_do_not() -> None:
    truth = {0: TrueEvent([Hit(0, A, 3.0), Hit(1, A, 1.0), Hit(2, B, 4.0), Hit(3, 0, 100.0)])}
    assert efficiency(truth, assigned(1, 1, 2, 2)[:2]) == 0.5


def test_majorities_are_by_count_not_by_weight() -> None:
    truth = {0: TrueEvent([Hit(0, A, 0.0), Hit(1, A, 0.0), Hit(2, B, 9.0), Hit(3, B, 1.0), Hit(4, B, 1.0)])}
    assert efficiency(truth, assigned(1, 1, 1)) == 0


@pytest.mark.parametrize(
    ("owned", "in_track", "reconstructed"),
    [(5, 2, 0), (5, 3, 1), (3, 3, 1), (3, 2, 0), (2, 2, 1), (2, 1, 0), (1, 1, 1)],
)
def test_a_particle_is_reconstructed_by_three_of_its_hits_or_all(
    owned: int, in_track: int, reconstructed: float
) -> None:
    truth = event(*[A] * owned, pt={A: 1.5})
    tracks = [1] * in_track + [-1] * (owned - in_track)
    assert metrics(truth, assigned(*tracks))["physics_eff_pt1"] == reconstructed


def test_a_reconstructing_track_need_not_be_correct() -> None:
    truth = event(*[A] * 7, pt={A: 1.5})
    result = metrics(truth, assigned(1, 1, 1))
    assert result["physics_eff_pt1"] == 1
    assert result["trackml_weighted_efficiency"] == 0


@pytest.mark.parametrize(
    ("particle", "counts"),
    [
        (Particle(A, 1.5), True),
        (Particle(A, 1.0), False),
        (Particle(A, 1.5, primary=False), False),
        (Particle(A, float("nan")), False),
        (Particle(B, 1.5), False),
    ],
    ids=["counts", "exactly 1 GeV", "not primary", "no momentum", "no hits"],
)
def test_who_counts_for_the_physics_efficiency(particle: Particle, counts: bool) -> None:
    truth = {0: TrueEvent([Hit(0, A)], [particle])}
    assert metrics(truth, assigned(1))["physics_eff_pt1"] == counts


def test_particles_without_hits_are_not_in_the_duplicate_rate() -> None:
    truth = event(*[A] * 8, pt={A: 1.0, B: 1.0, C: 1.0})
    assert metrics(truth, assigned(1, 1, 1, 1, 2, 2, 2, 2))["duplicate_rate"] == 1


def test_the_perfect_answer_has_the_best_metrics() -> None:
    hits = (A, A, 0, B, B, C, 0, A, A, A, A)
    truth = event(*hits, pt={A: 2.0, B: 0.5, C: 7.0})
    assert metrics(truth, assigned(*(particle or -1 for particle in hits))) == {
        "trackml_weighted_efficiency": 1,
        "fake_rate": 0,
        "duplicate_rate": 0,
        "physics_eff_pt1": 1,
        "double_majority_eff_pt1": 1,
    }


def test_nothing_at_all_gives_zeros() -> None:
    empty = predictions([])
    assert set(metrics({0: TrueEvent([])}, []).values()) == {0}
    block = one_block(dataset(event(A, A)), empty)
    assert TASK.check(block) == []
    assert set(TASK.metrics(TASK.score(block)).values()) == {0}
    assert set(TASK.metrics(TASK.merge([])).values()) == {0}
