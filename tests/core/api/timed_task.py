"""A third-party task whose first metric is self-reported: the time that tracking took."""

from __future__ import annotations

from pathlib import Path

from tests.distributions import install

SOURCE = """
from dataclasses import replace
import numpy as np
from collidium.contracts.task import Column, Metric
from collidium.hookspecs import hookimpl
from collidium.scoring import engine
from collidium_tasks.tracking import TrackingTask

engine.OWN_PACKAGES.add("timed_task")  # workers are used again, as those of built-in tasks: much faster
EFFICIENCY = TrackingTask.card.metrics[0]

class Timed(TrackingTask):
    version = "{version}"
    card = replace(
        TrackingTask.card,
        name="timed",
        columns=(*TrackingTask.card.columns, Column(name="seconds", kind="float", description="Time.")),
        metrics=(
            Metric(name="speed", higher_is_better=True, description="Events per second.", self_reported=True),
            EFFICIENCY,
        ),
    )

    def score(self, block):
        seconds = np.asarray(block.predictions["seconds"])
        return super().score(block), len(block.events), float(seconds.max(initial=0))

    def merge(self, tallies):
        tallies = list(tallies)
        return (
            super().merge([tally[0] for tally in tallies]),
            sum(tally[1] for tally in tallies),
            sum(tally[2] for tally in tallies),
        )

    def metrics(self, tally):
        counted, events, seconds = tally
        efficiency = super().metrics(counted)[EFFICIENCY.name]
        scores = {{"speed": events / seconds if seconds else 0.0, EFFICIENCY.name: efficiency}}
        {change}
        return scores

    def resample(self, tallies, draws):
        return [self.metrics(self.merge([tallies[group] for group in draw])) for draw in draws]

    def warnings(self, tally):
        return []

    def counts(self, tally):
        return {{}}

    def curves(self, tally):
        return ()

    def baselines(self):
        return {{}}

    def oracle(self, truth):
        return None

@hookimpl
def collidium_tasks():
    return [Timed()]
"""


def install_timed(site: Path, version: str = "1", change: str = "pass") -> None:
    """Write the task into ``site``, or over it; ``change`` is what its scorer does to ``scores``."""
    source = SOURCE.format(version=version, change=change)
    if site.exists():
        (site / "timed_task.py").write_text(source)
    else:
        install(site, "timed-task", {"timed_task": source})
