"""Batch scripts: an array job, each task of which simulates one part.

Values in ``#SBATCH`` lines cannot be quoted, so the settings allow only plain characters in them. All else is
quoted for bash. A script contains no secrets and no address of the server. ``part.sh`` has the commands of
one part.

Each task creates ``<directory>/<request_id>/<index>/`` atomically when its part is complete, with a manifest
of its tables (:data:`~collidium_runners.outputs.MANIFEST`), and when it ends, with or without success,
``<directory>/<request_id>/status/<job id>_<index>`` (see :mod:`collidium_runners.batch.states`). A failed
part is tried three times in all; then parts that have not started are cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil
from pathlib import PurePath
from typing import Final

from collidium.contracts.runner import Job, RunnerRefused, part_events
from collidium_runners.command import PipelineCommand, job_name, quoted

#: Maximum number of array tasks in a job by Slurm's default (MaxArraySize 1001).
MAX_PARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Events ``first_event`` to ``first_event + events - 1`` of a job.

    All parts have the job's seed. An event depends on the seed and its number only, not on the split.
    """

    index: int
    first_event: int
    events: int


def parts(job: Job, events_per_part: int, max_parts: int = MAX_PARTS) -> tuple[BatchPart, ...]:
    """Split a job into parts of consecutive events, with ids from 0.

    Parts have at most ``events_per_part`` events (0: all), and more if there were more than ``max_parts``
    parts otherwise. Their sizes differ by at most one.
    """
    number = min(-(-job.events // (events_per_part or job.events)), max_parts)
    ranges = (part_events(job.events, index, number) for index in range(number))
    return tuple(BatchPart(index, events.start, len(events)) for index, events in enumerate(ranges))


#: The time limit of a part: a multiple of the expected time, plus minutes for starting the pipeline and the
#: overhead of a channel.
TIME_FACTOR: Final = 2
EXTRA_MINUTES: Final = 15

#: Placeholders of the command that differ between parts, and the script's variables for them.
_VARIABLES: Final = {name: name for name in ("events", "first_event", "output")}


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each part requests of the batch system; empty values mean its default."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    #: CPUs of a part; 0 for an exclusive node.
    cpus: int = 0
    #: Number of parts that share a node, and so the factor by which each is slower.
    parts_per_node: int = 1

    def directives(self) -> list[str]:
        """Return the options of sbatch."""
        named = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
        }
        shared = f"--cpus-per-task={self.cpus}" if self.cpus else "--exclusive"
        return [f"--{option}={value}" for option, value in named.items() if value] + [shared]


def minutes(job: Job, parts: Sequence[BatchPart], parts_per_node: int = 1) -> int:
    """Return the time limit of each part."""
    longest = job.node_seconds * max(part.events for part in parts) / job.events * parts_per_node
    return ceil(TIME_FACTOR * longest / 60) + EXTRA_MINUTES


def script(
    job: Job,
    parts: Sequence[BatchPart],
    command: PipelineCommand,
    directory: PurePath,
    allocation: Allocation = Allocation(),
) -> str:
    """Return the script for sbatch; ``directory`` is an absolute path on the compute nodes.

    Raises :class:`~collidium.contracts.runner.RunnerRefused` for a job with a null character.
    """
    values = job.order.parameters | {"request_id": job.request_id}
    options = [
        f"--job-name={job_name(job.request_id)}",
        f"--array=0-{len(parts) - 1}",
        f"--time={minutes(job, parts, allocation.parts_per_node)}",
        "--nodes=1",
        "--ntasks=1",
        # The script writes the log of each part itself, as Slurm interprets characters in file names.
        "--output=/dev/null",
        *allocation.directives(),
    ]
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in options),
        "set -euo pipefail",
        f"request_directory={quoted(str(directory / job.request_id))}",
        f"first_events=({_numbers(part.first_event for part in parts)})",
        f"part_events=({_numbers(part.events for part in parts)})",
        f"pipeline() {{ {command.shell(values, _VARIABLES)}; }}",
    ]
    head = "\n".join(lines) + "\n"
    if "\0" in head:
        raise RunnerRefused("a batch script cannot contain a null character")
    return head + _body()


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


@cache
def _body() -> str:
    return files("collidium_runners.batch").joinpath("part.sh").read_text(encoding="utf-8")
