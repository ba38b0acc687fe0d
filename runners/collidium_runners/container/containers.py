"""Options of containers of jobs, and their state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collidium.containers.engine import Container, bind, confined
from collidium.containers.engine import options as as_options
from collidium.contracts.runner import RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium_runners.spool.engine import Run

#: Where a container finds the folder for its output, and one for what it needs in between.
OUTPUT: Final = "/output"
SCRATCH: Final = "/tmp"  # noqa: S108 -- the container's own

_LOG_SIZE: Final = "10m"
_PROCESSES: Final = 4096
#: The exit code that engines report for a container whose end they missed.
_UNSEEN: Final = 255


def run_of(container: Container) -> Run:
    """How the container's job is."""
    return Run(
        is_new=container.is_new,
        is_over=container.is_over,
        exit_code=container.exit_code,
        out_of_memory=container.out_of_memory,
        started=container.started,
        finished=container.finished,
        doubt="or the machine was restarted" if container.exit_code == _UNSEEN else "",
    )


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one container may use; 0 CPUs: all of the machine's."""

    memory_bytes: int
    cpus: float


def options(name: str, allowance: Allowance, output: Path, scratch: Path, *, rootless: bool) -> list[str]:
    """Options of ``create``: nothing of the server is seen but the two folders.

    Raises :class:`RunnerUnavailable` for folders that cannot be mounted.
    """
    words = {
        "--name": [name],
        "--label": ["collidium.job=1"],
        "--pids-limit": [str(_PROCESSES)],
        # As much with swap as without: no swap.
        "--memory": [str(allowance.memory_bytes)],
        "--memory-swap": [str(allowance.memory_bytes)],
        "--cpus": [f"{allowance.cpus:g}"] if allowance.cpus else [],
        "--log-driver": ["json-file"],
        "--log-opt": [f"max-size={_LOG_SIZE}"],
        "--workdir": [SCRATCH],
        "--env": [f"HOME={SCRATCH}", f"TMPDIR={SCRATCH}"],
    }
    mounts = [_mounted(output, OUTPUT), _mounted(scratch, SCRATCH)]
    return [*confined(rootless=rootless), "--read-only", *as_options(words), *mounts]


def _mounted(source: Path, target: str) -> str:
    try:
        return bind(source, target)
    except ValueError as error:
        wrong = ConfigurationError(f"PLATFORM_DATA_DIR: {error}")
        raise RunnerUnavailable("the job's folders cannot be mounted") from wrong
