"""How often intervals of one standard error contain the truth: 68% is right.

    python perf/coverage.py            the table of perf/README.md; some minutes
    python perf/coverage.py --quick    a smoke of some seconds

Each line draws experiments whose truth is known and takes errors as the engine does: tasks' own tallies, in
groups of events, resampled. Fakes come in events of which some have more than others, tracks too. True rates
differ by up to 10% from experiment to experiment: at a single rate the coverage of whole numbers is anything
around its mean (L. Brown, T. Cai and A. DasGupta, Statistical Science 16 (2001) 101).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from collidium.contracts.task import EventRange, Tally, Task
from collidium.scoring.uncertainty import groups_of, resampled, standard_errors
from collidium_tasks.anomaly import AnomalyTask
from collidium_tasks.anomaly.tally import AnomalyTally
from collidium_tasks.jets import JetsTask
from collidium_tasks.jets.tally import JetsTally
from collidium_tasks.ranking import Scores
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.tally import EVENT

NO_SCORES = np.empty(0)
Random = np.random.Generator
#: The goals: from 100 events and ten expected counts on, and below.
MANY, FEW = (0.64, 0.72), (0.64, 1.0)


@dataclass(frozen=True)
class Case:
    """Experiments of one kind."""

    task: Task
    events: int
    #: Metric -> expected number of what is counted, on average; None where nothing is.
    expected: Mapping[str, float | None]
    #: Makes the true metrics of an experiment, and the tallies of its groups.
    draw: Callable[[Random], tuple[Mapping[str, float], Sequence[Tally]]]

    def goal(self, metric: str) -> tuple[float, float]:
        return MANY if self.events >= 100 and (self.expected[metric] or 10) >= 10 else FEW


def coverage(case: Case, experiments: int) -> Iterator[tuple[str, float, int]]:
    """For each metric the part of the experiments with the truth within one error, and how many had one."""
    random = np.random.default_rng([20, case.events, *(int(100 * (n or 0)) for n in case.expected.values())])
    inside: dict[str, list[bool]] = {metric: [] for metric in case.expected}
    for _ in range(experiments):
        truths, tallies = case.draw(random)
        whole = case.task.merge(tallies)
        found = case.task.metrics(whole)
        replicates = resampled(case.task, tallies, case.task.sample_sizes(whole))
        errors = standard_errors(replicates, case.task.counts(whole))
        for metric, truth in truths.items():
            if metric in found:
                inside[metric].append(abs(found[metric] - truth) <= errors[metric])
    for metric, results in inside.items():
        yield metric, float(np.mean(results)), len(results)


def tracking(events: int, metric: str, rate: float, tracks: float) -> Case:
    """Events of about so many tracks; each has its own probability of a fake, a duplicate, or a hit found."""

    counted = metric != "trackml_weighted_efficiency"

    def draw(random: Random) -> tuple[Mapping[str, float], list[Tally]]:
        made = np.zeros(events, EVENT)
        mean_rate = rate * random.uniform(0.9, 1.1)
        # The number of tracks and the rate vary by 30% from event to event, independently.
        mean = tracks * random.gamma(10, 0.1, events)
        of = random.poisson(mean) + 1
        rates = np.minimum(mean_rate * random.gamma(10, 0.1, events), 1)
        made["counted_tracks"] = made["particles"] = made["high_pt_particles"] = of
        made["fake_tracks"] = made["duplicated_particles"] = random.binomial(of, rates)
        made["high_pt_reconstructed"] = of - made["fake_tracks"]
        made["total_weight"], made["found_weight"] = 1, random.normal(mean_rate, 0.1, events)
        groups = [made[group.start : group.stop] for group in groups_of(EventRange(0, events))]
        return {metric: 1 - mean_rate if metric == "physics_eff_pt1" else mean_rate}, groups

    expected = events * (tracks + 1) * rate if counted else None
    return Case(TrackingTask(), events, {metric: expected}, draw)


def jets(events: int, separation: float, per_event: float) -> Case:
    """Rejection of light jets where b jets have discriminants that are higher by ``separation`` sigma."""
    normal = NormalDist()
    efficiency = 1 - normal.cdf(separation + normal.inv_cdf(0.3))

    def draw(random: Random) -> tuple[Mapping[str, float], list[Tally]]:
        groups = groups_of(EventRange(0, events))
        tallies = []
        for group in groups:
            b, light = random.poisson(per_event * len(group), 2)
            made = Scores(np.sort(random.normal(separation, 1, b)), np.sort(random.normal(0, 1, light)))
            tallies.append(JetsTally(made, made, made, b + light, b + light))
        return {"light_rejection_70": 1 / efficiency}, tallies

    return Case(JetsTask(), events, {"light_rejection_70": events * per_event * efficiency}, draw)


def anomaly(events: int, separation: float) -> Case:
    """One event in a hundred is signal, with scores that are higher by ``separation`` sigma."""
    normal = NormalDist()
    efficiency = 1 - normal.cdf(normal.inv_cdf(0.99) - separation)
    truths = {"auroc": normal.cdf(separation / sqrt(2)), "signal_efficiency_fpr1": efficiency}

    def draw(random: Random) -> tuple[Mapping[str, float], list[Tally]]:
        tallies = []
        for group in groups_of(EventRange(0, events)):
            signal = random.normal(separation, 1, random.binomial(len(group), 0.01))
            background = random.normal(0, 1, len(group) - len(signal))
            tallies.append(AnomalyTally.of([background, signal, *[NO_SCORES] * 3]))
        return truths, tallies

    signal = 0.01 * events
    expected = {"auroc": signal, "signal_efficiency_fpr1": signal * efficiency}
    return Case(AnomalyTask(), events, expected, draw)


def cases(many: int) -> Iterator[tuple[Case, int]]:
    """Cases and their numbers of experiments: those of rankings take a tenth of a second, and are fewer."""
    some = max(many // 3, 5)
    for events in (2, 5, 10, 30, 100, 1000):
        yield tracking(events, "trackml_weighted_efficiency", 0.6, 50), many
    for events, expected in ((100, 0.3), (100, 1), (100, 3), (100, 6), (100, 11.2), (100, 14), (100, 20)):
        yield tracking(events, "fake_rate", expected / events / 51, 50), many
    for events, expected in ((5, 20), (10, 20), (1000, 3), (1000, 14), (1000, 100)):
        yield tracking(events, "duplicate_rate", expected / events / 51, 50), many
    for events, expected in ((100, 3), (100, 14), (100, 50)):
        yield tracking(events, "physics_eff_pt1", expected / events / 51, 50), many
    for events, separation in ((300, 1.2), (1000, 1.5), (1000, 2.2)):
        yield jets(events, separation, 3), some
    for events in (1000, 3000, 10_000):
        yield anomaly(events, 2.0), some


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smoke of some seconds")
    parser.add_argument("--experiments", type=int, default=3000)
    parser.add_argument("--tasks", help="separated by commas; default: all")
    options = parser.parse_args()
    print("| metric | events | expected counts | experiments | intervals with the truth | goal | |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for case, experiments in cases(40 if options.quick else options.experiments):
        if options.tasks and case.task.card.name not in options.tasks.split(","):
            continue
        for metric, found, number in coverage(case, experiments):
            low, high = case.goal(metric)
            goal = f"{low} to {high}" if high < 1 else f"at least {low}"
            expected = "" if case.expected[metric] is None else f"{case.expected[metric]:.3g}"
            verdict = "met" if low <= found <= high else "missed"
            error = sqrt(found * (1 - found) / max(number, 1))
            print(
                f"| `{metric}` | {case.events:,} | {expected} | {number:,} | {found:.3f} ± {error:.3f} "
                f"| {goal} | {verdict} |"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
