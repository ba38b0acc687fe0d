"""Which pipeline simulates an order, and where: in containers of an engine, or on this machine."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from collidium import plugins
from collidium.contracts.pipeline import SEED, Pipeline, Stage
from collidium.order import Order
from collidium.pipelines.production import CannotSimulate, can_simulate
from collidium.plugins import Provided
from collidium.runtime.containers import (
    PROGRAMS,
    Engine,
    EngineRefused,
    EngineUnavailable,
    bind,
    confined,
    reason,
)

AUTO: Final = "auto"
NONE: Final = "none"
#: What ``--runtime`` may be.
RUNTIMES: Final = (AUTO, *PROGRAMS, NONE)
#: The pipeline of production, and the one that needs no container.
PRODUCTION: Final = "odd"
BUILT_IN: Final = "acts"

#: Receives a note for the user.
Note = Callable[[str], None]
#: A pipeline by its name; raises ConfigurationError that names those there are.
Get = Callable[[str], Pipeline]

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


@dataclass(frozen=True, slots=True)
class Choice:
    """A pipeline and where it runs."""

    pipeline: Pipeline
    runtime: Runtime
    #: Images that have to be fetched first.
    missing: tuple[str, ...] = ()


def choose(
    name: str, runtime: str, order: Order, get: Get, note: Note, *, started: str | None = None
) -> Choice:
    """Choose by what was asked for; ``started`` is the pipeline of an earlier run that is to go on.

    Raises CannotSimulate where there is no choice, and what ``get`` raises.
    """
    if name != AUTO:
        return _place(get(name), runtime)
    if started is not None:
        choice = _place(get(started), runtime)
        if choice.missing and isinstance(choice.runtime, Containers):
            raise CannotSimulate(_why_not(choice.pipeline, [choice.runtime.engine], {}))
        return choice
    if runtime == NONE:
        return _place(get(BUILT_IN), runtime)
    found, why_not = _production(get(PRODUCTION), runtime, order)
    if found is not None:
        return found
    if runtime != AUTO:
        raise CannotSimulate(why_not)
    built_in = get(BUILT_IN)
    if can_simulate(order, built_in):  # else that is the error
        note(f"{why_not}. So {BUILT_IN} simulates, without a container.")
    return _place(built_in, NONE)


def _production(pipeline: Pipeline, runtime: str, order: Order) -> tuple[Choice | None, str]:
    """The pipeline of production where it can run now, else why not and what would change that."""
    if not can_simulate(order, pipeline):
        return None, f"Pipeline {pipeline.name} does not simulate {order.channel}"
    engines, silent = _engines(runtime)
    for engine in engines:
        if not _missing(pipeline, engine):
            return Choice(pipeline, Containers(engine)), ""
    return None, _why_not(pipeline, engines, silent)


def _place(pipeline: Pipeline, runtime: str) -> Choice:
    """Where a pipeline runs that was asked for by its name."""
    has_images = all(stage.image for stage in pipeline.stages)
    if runtime == NONE:
        return _natively(pipeline)
    if not has_images:
        if runtime != AUTO:
            raise CannotSimulate(f"pipeline {pipeline.name} has no image: give --runtime none")
        return _natively(pipeline)
    engines, silent = _engines(runtime)
    for engine in engines:
        if not _missing(pipeline, engine):
            return Choice(pipeline, Containers(engine))
    if runtime == AUTO and pipeline.native is not None and not _absent(pipeline):
        return _natively(pipeline)
    if not engines:
        instead = "" if pipeline.native is None else f", or {_install(pipeline)}"
        raise CannotSimulate(
            f"pipeline {pipeline.name} needs a container engine ({_why(silent)}): install docker or podman"
            f"{instead}"
        )
    return Choice(pipeline, Containers(engines[0]), _missing(pipeline, engines[0]))


def _natively(pipeline: Pipeline) -> Choice:
    if pipeline.native is None:
        raise CannotSimulate(
            f"pipeline {pipeline.name} runs in containers alone, --runtime none is not for it"
        )
    if absent := _absent(pipeline):
        raise CannotSimulate(
            f"pipeline {pipeline.name} needs {' and '.join(absent)} on this machine: {_install(pipeline)}"
        )
    return Choice(pipeline, Native())


def _absent(pipeline: Pipeline) -> list[str]:
    return [module for module in pipeline.native or () if find_spec(module) is None]


def _install(pipeline: Pipeline) -> str:
    if pipeline.extra is None:
        return f"install {' and '.join(pipeline.native or ())}"
    return f"pip install 'collidium[{pipeline.extra}]'"


def _engines(runtime: str) -> tuple[list[Engine], Mapping[str, str]]:
    """The engines that answer, and what is wrong with the others."""
    engines, silent = [], {}
    for program in PROGRAMS if runtime == AUTO else (runtime,):
        try:
            engines.append(Engine.probe(program))
        except EngineUnavailable as error:
            silent[program] = reason(error)
    return engines, silent


def _missing(pipeline: Pipeline, engine: Engine) -> tuple[str, ...]:
    """The images that are not on this machine, each once."""
    images = dict.fromkeys(stage.image for stage in pipeline.stages if stage.image)
    return tuple(image for image in images if not engine.has_image(image))


def _why_not(pipeline: Pipeline, engines: Sequence[Engine], silent: Mapping[str, str]) -> str:
    """Why a pipeline does not run in a container now, and how it would."""
    if not engines:
        return (
            f"No container engine answers for pipeline {pipeline.name} ({_why(silent)}); install docker or "
            f"podman, then give --pipeline {pipeline.name}"
        )
    program = engines[0].program
    return f"{program} has no image of pipeline {pipeline.name} (--pipeline {pipeline.name} fetches it)"


def _why(silent: Mapping[str, str]) -> str:
    return "; ".join(silent.values()) or "none is here"


def installed(blocked: Sequence[str] = ()) -> Provided[Pipeline]:
    """The pipelines of all plugins but those that are blocked."""
    return plugins.load(blocked).pipelines()
