"""What perf/scoring.py and perf/ranking.py ask a worker to do; a module of its own: it is pickled by name."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from collidium.contracts.task import Reconstruction
from collidium.scoring import engine, span, uncertainty
from collidium.scoring.truth.tables import TableReader
from collidium.scoring.truth.versions import Truth
from collidium_tasks.anomaly import AnomalyTask
from collidium_tasks.jets import JetsTask
from collidium_tasks.tracking import TrackingTask

# Scored by warm workers, as the tasks that these are but for baselines.
engine.OWN_PACKAGES.add("scoring_calls")


class QuietTask(TrackingTask):
    """The tracking task without baselines: none is scored when truth is imported."""

    def baselines(self) -> dict[str, Reconstruction]:
        return {}


class QuietAnomalyTask(AnomalyTask):
    """The anomaly task without baselines, whose inputs are not needed."""

    card = replace(AnomalyTask.card, inputs=())

    def baselines(self) -> dict[str, Reconstruction]:
        return {}


class QuietJetsTask(JetsTask):
    """The jets task without baselines, whose inputs are not needed."""

    card = replace(JetsTask.card, inputs=())

    def baselines(self) -> dict[str, Reconstruction]:
        return {}


def cpu_seconds(_: None) -> float:
    """CPU time of this worker so far."""
    return time.process_time()


def draw_groups(groups: int) -> None:
    """How many groups of events are drawn for standard errors from now on; none are drawn of one group."""
    uncertainty.GROUPS = groups


def set_errors(wanted: bool) -> None:
    """Compute standard errors from now on, or not; the groups of events stay."""
    span.resampled = uncertainty.resampled if wanted else lambda *of: {}


def anonymous_bytes(_: None) -> int:
    """Anonymous memory of this worker; it gives none back, so this is its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("this kernel does not report RssAnon")


def truth_tables(truth: Truth) -> dict[str, pa.Table]:
    """Every table of truth, whole."""
    tables = {}
    for name, path in truth.paths.items():
        with TableReader(path) as reader:
            tables[name] = pa.concat_tables(reader.read(block.index) for block in truth.blocks)
    return tables


def decode_alone(paths: tuple[Path, ...]) -> float:
    """CPU time for decoding all columns of all row groups of parquet files, and nothing else."""
    import pyarrow.parquet as pq

    start = time.process_time()
    for path in paths:
        with pq.ParquetFile(path, memory_map=True) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number, use_threads=False)
    return time.process_time() - start
