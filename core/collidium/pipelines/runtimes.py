"""Where the stages of a pipeline run: on this machine, or in containers of an engine."""

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

#: The working directory in a container.
_WORK: Final = "/simulation"
_TMP: Final = "/tmp"  # noqa: S108 -- the container's own
#: Maximum time of a container whose process was killed.
_LONGEST_SECONDS: Final = 7 * 86_400
#: Variables that native stages inherit: no tokens, and no URLs, which may contain passwords. COLLIDIUM_JOB
#: marks the processes of jobs of the runner ``local``.
_KEPT: Final = frozenset(
    {"COLLIDIUM_JOB", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TZ", "USER"}
    | {"VIRTUAL_ENV"}
)


@dataclass(frozen=True, slots=True)
class Native:
    """Runs stages on this machine."""

    #: As in ``--runtime``.
    name: str = "none"
    #: The Python for stages.
    python: str = sys.executable

    def seen(self, work: Path) -> str:
        """Return the working directory as commands see it."""
        return str(work)

    def command(self, stage: Stage, words: Sequence[str], work: Path, seconds: float | None) -> list[str]:
        """Return the command that runs a stage for at most ``seconds``."""
        return list(words)

    def environment(self, work: Path) -> Mapping[str, str]:
        """Return the environment of the command."""
        kept = {n: v for n, v in os.environ.items() if n in _KEPT or n.startswith(("LC_", "OMP_"))}
        return kept | {"TMPDIR": str(work / "tmp"), "PYTHONUNBUFFERED": "1"}

    def clear(self, work: Path) -> None:
        """End what an earlier run left running: nothing, as the kernel ends stages with their parent."""


@dataclass(frozen=True, slots=True)
class Containers:
    """Runs each stage in a container of an engine. All have the same name, so that only one exists."""

    engine: Engine
    python: str = "python3"

    @property
    def name(self) -> str:
        return self.engine.program

    def seen(self, work: Path) -> str:
        return _WORK

    def command(self, stage: Stage, words: Sequence[str], work: Path, seconds: float | None) -> list[str]:
        """Return the command. Raises CannotSimulate for a directory that cannot be mounted."""
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
            # Its output goes to this process.
            "--log-driver=none",
            f"--workdir={_WORK}",
            f"--env=HOME={_TMP}",
            "--env=PYTHONUNBUFFERED=1",
            f"--env={SEED}",  # from the environment of the engine's client
            *mounts,
            "--entrypoint=",
            stage.image,
            *words,
        ]

    def environment(self, work: Path) -> Mapping[str, str]:
        return os.environ  # for the engine's client; containers do not get it

    def clear(self, work: Path) -> None:
        """Remove the container of an earlier run. Raises CannotSimulate if it cannot be removed."""
        try:
            self.engine.remove(container_name(work))
        except (EngineRefused, EngineUnavailable) as error:
            raise CannotSimulate(f"an old container cannot be removed: {error}") from error

    def _longest(self, seconds: float | None) -> list[str]:
        """Return the option by which podman itself ends containers, also those of killed processes."""
        if self.engine.program != "podman":
            return []
        return [f"--timeout={int(min(seconds or _LONGEST_SECONDS, _LONGEST_SECONDS)) + 60}"]


Runtime = Native | Containers


def container_name(work: Path) -> str:
    """Return the name of the containers for a working directory, the same in every run."""
    digest = hashlib.sha256(os.fsencode(work.resolve())).hexdigest()
    return f"collidium-simulate-{digest[:16]}"


def end_quietly(runtime: Runtime, work: Path) -> None:
    """End what is left running, ignoring errors, as the next run clears it, too."""
    with suppress(CannotSimulate):
        runtime.clear(work)
