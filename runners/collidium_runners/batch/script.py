"""The batch script: an array job, each task of which simulates one part.

Slurm reads the lines that begin with ``#SBATCH``, which cannot be quoted: the settings allow plain
characters in their values alone. Everything else is quoted for bash. The script contains no secret and no
address of the server. ``part.sh`` has the commands of one part.

Each task writes ``<directory>/<request_id>/<index>/`` at once when its part is whole, with a manifest of its
tables (:data:`~collidium_runners.outputs.MANIFEST`), and at its end, good or bad,
``<directory>/<request_id>/status/<job id>_<index>`` (see :mod:`collidium_runners.batch.states`). A part that
fails is simulated again, three times in all; then parts that have not begun are cancelled.
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

#: As many array tasks as Slurm allows in one job unless its operator allows more (MaxArraySize 1001).
MAX_PARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """Events ``first_event`` to ``first_event + events - 1`` of a job.

    All parts have the job's seed: an event follows from that and its number, so a cut changes no event.
    """

    index: int
    first_event: int
    events: int


def parts(job: Job, events_per_part: int, max_parts: int = MAX_PARTS) -> tuple[Part, ...]:
    """Cut the job so that exactly its events are simulated, with ids from 0 and no gap.

    Parts have at most ``events_per_part`` events (0: all of them) and differ by one at most; where that would
    make more than ``max_parts`` of them, each has more events.
    """
    number = min(-(-job.events // (events_per_part or job.events)), max_parts)
    cut = (part_events(job.events, index, number) for index in range(number))
    return tuple(Part(index, events.start, len(events)) for index, events in enumerate(cut))


#: How much longer than expected a part may take, and the minutes that every part may take on top: to start
#: the pipeline, and what a channel costs once.
TIME_FACTOR: Final = 2
EXTRA_MINUTES: Final = 15

#: What differs between parts: placeholders of the command, and the script's variables for them.
_VARIABLES: Final = {name: name for name in ("events", "first_event", "output")}


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each part asks of the batch system; empty: its default."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    #: CPUs of a part; 0: a whole node, exclusively.
    cpus: int = 0
    #: How many parts compute on a node at once, and so how much slower than alone.
    parts_per_node: int = 1

    def directives(self) -> list[str]:
        """Options of sbatch; the settings allow plain values alone."""
        named = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
        }
        shared = f"--cpus-per-task={self.cpus}" if self.cpus else "--exclusive"
        return [f"--{option}={value}" for option, value in named.items() if value] + [shared]


def minutes(job: Job, parts: Sequence[Part], parts_per_node: int = 1) -> int:
    """The time limit of each part."""
    longest = job.node_seconds * max(part.events for part in parts) / job.events * parts_per_node
    return ceil(TIME_FACTOR * longest / 60) + EXTRA_MINUTES


def script(
    job: Job,
    parts: Sequence[Part],
    command: PipelineCommand,
    directory: PurePath,
    allocation: Allocation = Allocation(),
) -> str:
    """The script to hand to sbatch; ``directory`` is an absolute path where the job runs.

    Raises :class:`~collidium.contracts.runner.RunnerRefused` for a job that cannot be written down.
    """
    values = {
        "channel": job.channel,
        "pileup": job.pileup,
        "seed": job.seed,
        "vary": job.vary,
        "request_id": job.request_id,
    }
    options = [
        f"--job-name={job_name(job.request_id)}",
        f"--array=0-{len(parts) - 1}",
        f"--time={minutes(job, parts, allocation.parts_per_node)}",
        "--nodes=1",
        "--ntasks=1",
        # Each part has its own log, with a name that needs no quoting by Slurm's rules.
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
    written = "\n".join(lines) + "\n"
    if "\0" in written:
        raise RunnerRefused("a batch script cannot hold a null character")
    return written + _body()


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


@cache
def _body() -> str:
    return files("collidium_runners.batch").joinpath("part.sh").read_text(encoding="utf-8")
