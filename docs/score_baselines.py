"""Scores the baselines of all tasks on events of the built-in pipeline, for docs/tasks::

    python docs/score_baselines.py                          makes its events first: an hour on one core
    python docs/score_baselines.py --events 50              a smaller try
    python docs/score_baselines.py --work DIR --tasks jets  some tasks, events kept in DIR for the next time
    python docs/score_baselines.py --tasks tracking_pu200   tracking with 200 pileup collisions

Events lie in DIR/<channel>; what is there already is used as it is. Figures go to
docs/tasks/baseline_scores.json, where those of other tasks stay; `python docs/make_task_pages.py` writes the
pages. Data loading is measured on the machine at hand, from its disk and from a hub on it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from collidium import plugins
from collidium.contracts.executor import Limits
from collidium.contracts.task import EventRange, Reconstruction, Task
from collidium.datasets import Dataset
from collidium.scoring.engine import ScoringResult, evaluate
from collidium.scoring.truth.importing import Origin, build
from collidium.scoring.truth.versions import Truth
from collidium.scoring.uncertainty import standard_error_of_gain
from collidium.seeding.plan import BACKGROUND, MIX, SIGNALS, mix_channels
from collidium.testing.server import ServerProcess, run_command
from collidium_plugins.executor_processes import Processes
from collidium_tasks.tracking.baselines import ckf

SCORES: Final = Path(__file__).parent / "tasks" / "baseline_scores.json"

#: Not that of the events from which baselines have learned.
SEED: Final = 61803
TTBAR: Final = "ttbar"
#: Events of ttbar that are made, and of each channel of the anomaly mix; those that tracking is scored on,
#: without pileup and with; those that are loaded.
TTBAR_EVENTS, CHANNEL_EVENTS, TRACKING_EVENTS, PILEUP_EVENTS, SLICE = 600, 200, 30, 2, 600
#: What stands behind a task's name for its scores with 200 pileup collisions.
PU200: Final = "_pu200"
READINGS: Final = 9
#: The baseline that others of a task are compared with.
AGAINST: Final = {"anomaly": "forest", "jets": "trees", "tracking": "helix", "tracking_small": "helix"}

LIMITS: Final = Limits(memory_bytes=4 * 1024**3, seconds=3600)


@dataclass(frozen=True, slots=True)
class Sample:
    """Events of a config below a directory, and how they are called."""

    directory: Path
    config: str
    events: EventRange


@dataclass(frozen=True, slots=True)
class Events:
    """What the built-in pipeline has made, or makes when it is asked for."""

    work: Path
    #: Of each kind, at the most; None: as many as the pages have.
    most: int | None

    def ttbar(self, events: int) -> Sample:
        return self._first(self._channel(TTBAR, TTBAR_EVENTS), "ttbar_pu0", events)

    def ttbar_pu200(self, events: int) -> Sample:
        made = self._channel(TTBAR, PILEUP_EVENTS, pileup=200)
        return self._first(made, "ttbar_pu200", events)

    def mix(self) -> Sample:
        channels = [self._channel(channel, CHANNEL_EVENTS) for channel in (*BACKGROUND, *SIGNALS)]
        directory = self.work / "mix"
        if not directory.is_dir():
            mix_channels(channels, directory, self._limited(CHANNEL_EVENTS), seed=SEED)
        return Sample(directory, MIX, EventRange(0, len(Dataset(directory, MIX).table("channels").event_ids)))

    def _first(self, directory: Path, config: str, events: int) -> Sample:
        start = int(Dataset(directory, config).table("tracks").event_ids[0])
        return Sample(directory, config, EventRange(start, start + self._limited(events)))

    def _channel(self, channel: str, events: int, pileup: int = 0) -> Path:
        directory = self.work / f"{channel}{PU200 if pileup else ''}"
        if not (directory / "README.md").exists():
            _collidium(
                *("simulate", "--pipeline", "acts", "--runtime", "none", "--channel", channel),
                *("--events", str(self._limited(events)), "--pileup", str(pileup), "--seed", str(SEED)),
                *("--output", str(directory)),
            )
        return directory

    def _limited(self, events: int) -> int:
        return min(events, self.most or events)


async def scores_of(task: Task, sample: Sample, scratch: Path) -> dict[str, Any]:
    """What each baseline of a task scores on the events, as a server would score it.

    And by how much it is better than the one of AGAINST, with the error of the difference on the same events.
    """
    truth = await _truth(task, sample, scratch)
    made = {}
    for name, reconstruct in _reconstructions(task).items():
        file = scratch / f"{name}.parquet"
        pq.write_table(_predictions(task, reconstruct, sample), file)
        made[name] = await _evaluated(task, truth, file)
    against, metric = AGAINST.get(task.card.name, ""), task.card.primary_metric.name
    other = made.get(against)
    differences = {
        name: {
            "score": one.metrics[metric] - other.metrics[metric],
            "standard_error": standard_error_of_gain(one.replicates[metric], other.replicates[metric]),
        }
        for name, one in made.items()
        if other is not None and one is not other
    }
    baselines = {name: _scores(one) for name, one in made.items()}
    return {"baselines": baselines, "against": against, "differences": differences}


def _reconstructions(task: Task) -> dict[str, Reconstruction]:
    """The task's baselines and, for tracking, the Kalman filter's tracks of the table ``tracks``."""
    return {**task.baselines(), **({"ckf": ckf} if task.card.name == "tracking" else {})}


async def data_loading(task: Task, sample: Sample, scratch: Path) -> dict[str, Any]:
    """How fast the platform's own loader is here, by its command, with a server and a hub of its own."""
    truth = await _truth(task, sample, scratch)
    with ServerProcess(scratch / "server") as server:
        url = server.base_url
        environment = server.environment | {"PLATFORM_BACKEND": url, "PLATFORM_HUB_URL": f"{url}/hub"}
        environment |= {"HF_TOKEN": server.add_user("reader")}
        file = scratch / "data_loading.parquet"
        for arguments in (
            ("datasets", "publish", str(sample.directory), "--repo", "slice"),
            (
                *("bench", "data-loading", "reader/slice", "--config", sample.config),
                *("--table", task.card.inputs[0], "--events", str(sample.events)),
                *("--repeats", str(READINGS), "--output", str(file)),
            ),
        ):
            done = await asyncio.to_thread(run_command, arguments, environment, scratch)
            if done.returncode:
                raise RuntimeError(done.stderr)
    return {"baselines": {"collidium.datasets.load": _scores(await _evaluated(task, truth, file))}}


async def _truth(task: Task, sample: Sample, scratch: Path) -> Truth:
    async with _executor() as executor:
        return await build(
            *(task, Dataset(sample.directory, sample.config)),
            origin=Origin(sample.config, "local"),
            directory=scratch / "truth",
            executor=executor,
            limits=LIMITS,
            events=sample.events,
        )


async def _evaluated(task: Task, truth: Truth, file: Path) -> ScoringResult:
    async with _executor() as executor:
        return await evaluate(task, truth, file, executor=executor, limits=LIMITS)


@asynccontextmanager
async def _executor() -> AsyncIterator[Processes]:
    executor = Processes(1)
    try:
        yield executor
    finally:
        await executor.close()


def _predictions(task: Task, reconstruct: Reconstruction, sample: Sample) -> pa.Table:
    names = (*task.card.inputs, *(["tracks"] if reconstruct is ckf else []))
    blocks = Dataset(sample.directory, sample.config).read(names, sample.events)
    return pa.concat_tables([reconstruct(tables) for _, tables in blocks])


def _scores(made: ScoringResult) -> dict[str, Any]:
    """Each score with its standard error; None where there is none."""
    errors = made.uncertainties
    return {
        name: {"score": score, "standard_error": errors.get(name)} for name, score in made.metrics.items()
    }


def _collidium(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "collidium", *arguments], check=True)


def _sample(task: str, events: Events) -> Sample:
    if task.endswith(PU200):
        return events.ttbar_pu200(PILEUP_EVENTS)
    if task == "anomaly":
        return events.mix()
    if task == "data_loading":
        return events.ttbar(SLICE)
    return events.ttbar(TRACKING_EVENTS if task.startswith("tracking") else TTBAR_EVENTS)


async def _section(task: Task, sample: Sample) -> dict[str, Any]:
    score = data_loading if task.card.name == "data_loading" else scores_of
    with tempfile.TemporaryDirectory(prefix="collidium-") as scratch:
        scores = await score(task, sample, Path(scratch))
    from collidium_plugins.acts_pipeline import VERSION  # only there with the extra sim

    return {
        "dataset": sample.config,
        "events": str(sample.events),
        "pipeline": VERSION,
        "scorer_version": task.version,
        "date": datetime.now(UTC).date().isoformat(),
        "made_with": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("collidium", "numpy", "scikit-learn")},
        },
        # Times mean little where others have been at work.
        "machine": f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}",
        **scores,
    }


def _keep(task: str, section: dict[str, Any]) -> None:
    scores = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    scores[task] = section
    SCORES.write_text(json.dumps(dict(sorted(scores.items())), indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="where events are and stay; default: a temporary directory")
    parser.add_argument("--events", type=int, help="of each kind, at the most")
    parser.add_argument("--tasks", help="separated by commas; default: all")
    options = parser.parse_args()
    installed = plugins.load().tasks().things
    with tempfile.TemporaryDirectory(prefix="collidium-events-") as scratch:
        events = Events(options.work or Path(scratch), options.events)
        for name in options.tasks.split(",") if options.tasks else sorted([*installed, f"tracking{PU200}"]):
            task = installed[name.removesuffix(PU200)]
            section = asyncio.run(_section(task, _sample(name, events)))
            _keep(name, section)
            sys.stdout.write(f"{name}: {json.dumps(section['baselines'])}\n")


if __name__ == "__main__":
    main()
