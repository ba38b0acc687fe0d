"""Where the commands of stages run: in containers of an engine, or on this machine as they are."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collidium.contracts.pipeline import SEED, Stage
from collidium.pipelines.production import CannotSimulate
from collidium.runtime.containers import Engine, EngineRefused, EngineUnavailable, bind, confined

#: Where a container finds the working directory.
_WORK: Final = "/simulation"
_TMP: Final = "/tmp"  # noqa: S108 -- the container's own
#: No container stays longer when no process is left to end it.
_LONGEST_SECONDS: Final = 7 * 86_400
#: What a native stage sees of the environment: no token, and no address that may hold a password. By
#: COLLIDIUM_JOB the runner local knows what belongs to its jobs.
_KEPT: Final = frozenset(
    {"COLLIDIUM_JOB", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TZ", "USER"}
    | {"VIRTUAL_ENV"}
)


@dataclass(frozen=True, slots=True)
class Native:
    """This machine, with the Python that runs the platform."""

    #: What ``--runtime`` chooses it by.
    name: str = "none"
    #: Its interpreter.
    python: str = sys.executable

    def seen(self, work: Path) -> str:
        """The working directory as commands see it."""
        return str(work)

    def command(self, stage: Stage, words: Sequence[str], work: Path, seconds: float | None) -> list[str]:
        """The command of a stage, which has so many seconds."""
        return list(words)

    def environment(self, work: Path) -> Mapping[str, str]:
        """The environment of the command."""
        kept = {n: v for n, v in os.environ.items() if n in _KEPT or n.startswith(("LC_", "OMP_"))}
        return kept | {"TMPDIR": str(work / "tmp"), "PYTHONUNBUFFERED": "1"}

    def clear(self, work: Path) -> None:
        """End what an earlier run left running: nothing, as the kernel ended it with its parent."""


@dataclass(frozen=True, slots=True)
class Containers:
    """Containers of an engine, one for each stage, all with one name: none outlives its stage."""

    engine: Engine
    python: str = "python3"

    @property
    def name(self) -> str:
        return self.engine.program

    def seen(self, work: Path) -> str:
        return _WORK

    def command(self, stage: Stage, words: Sequence[str], work: Path, seconds: float | None) -> list[str]:
        """Raises CannotSimulate for a directory that cannot be mounted."""
        if stage.image is None:
            raise CannotSimulate(f"stage {stage.name} runs in no container: give --runtime none")
        try:
            mounts = [bind(work, _WORK), bind(work / "tmp", _TMP)]
        except ValueError as error:
            raise CannotSimulate(f"{work}: {error}; choose another --output") from None
        return [
            self.engine.program,
            "run",
            "--rm",
            f"--name={container_name(work)}",
            "--stop-timeout=1",
            *confined(rootless=self.engine.rootless),
            *self._longest(seconds),
            # What it writes comes to us, who keep it.
            "--log-driver=none",
            f"--workdir={_WORK}",
            f"--env=HOME={_TMP}",
            "--env=PYTHONUNBUFFERED=1",
            f"--env={SEED}",  # from the engine's own environment
            *mounts,
            "--entrypoint=",
            stage.image,
            *words,
        ]

    def environment(self, work: Path) -> Mapping[str, str]:
        return os.environ  # engines find their settings and sockets by it; containers see none of it

    def clear(self, work: Path) -> None:
        """Raises CannotSimulate where a container stays."""
        try:
            self.engine.remove(container_name(work))
        except (EngineRefused, EngineUnavailable) as error:
            raise CannotSimulate(f"an old container cannot be removed: {error}") from error

    def _longest(self, seconds: float | None) -> list[str]:
        """Podman ends containers by itself, also abandoned ones."""
        if self.engine.program != "podman":
            return []
        return [f"--timeout={int(min(seconds or _LONGEST_SECONDS, _LONGEST_SECONDS)) + 60}"]


Runtime = Native | Containers


def container_name(work: Path) -> str:
    """The name of the containers that work in a directory: the same in every run."""
    digest = hashlib.sha256(os.fsencode(work.resolve())).hexdigest()
    return f"collidium-simulate-{digest[:16]}"


def end_quietly(runtime: Runtime, work: Path) -> None:
    """End what is left, if it can be: the next run clears it all the same."""
    with suppress(CannotSimulate):
        runtime.clear(work)
