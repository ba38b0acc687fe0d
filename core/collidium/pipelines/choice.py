"""Choose the pipeline for an order, and whether it runs in containers or on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from collidium import plugins
from collidium.contracts.pipeline import Pipeline
from collidium.order import Order
from collidium.pipelines.processes import Containers, Native, Runtime
from collidium.pipelines.production import CannotSimulate, can_simulate
from collidium.plugins import Provided
from collidium.runtime.containers import PROGRAMS, Engine, EngineUnavailable, reason

AUTO: Final = "auto"
NONE: Final = "none"
#: The values of ``--runtime``.
RUNTIMES: Final = (AUTO, *PROGRAMS, NONE)
#: The preferred pipeline, and the one that needs no container.
PRODUCTION: Final = "odd"
BUILT_IN: Final = "acts"

#: Called with a note for the user.
Note = Callable[[str], None]
#: Returns a pipeline by name. Raises ConfigurationError with the names of all pipelines.
Get = Callable[[str], Pipeline]


@dataclass(frozen=True, slots=True)
class Choice:
    """A pipeline and where it runs."""

    pipeline: Pipeline
    runtime: Runtime
    #: Images to fetch first.
    missing: tuple[str, ...] = ()


def choose(
    name: str, runtime: str, order: Order, get: Get, note: Note, *, started: str | None = None
) -> Choice:
    """Choose a pipeline and its runtime; ``started`` is the pipeline of an earlier run to continue.

    Raises CannotSimulate if there is no choice, and the errors of ``get``.
    """
    if name != AUTO:
        return _with_runtime(get(name), runtime)
    if started is not None:
        choice = _with_runtime(get(started), runtime)
        if choice.missing and isinstance(choice.runtime, Containers):
            raise CannotSimulate(_why_not(choice.pipeline, [choice.runtime.engine], {}))
        return choice
    if runtime == NONE:
        return _with_runtime(get(BUILT_IN), runtime)
    found, why_not = _production(get(PRODUCTION), runtime, order)
    if found is not None:
        return found
    if runtime != AUTO:
        raise CannotSimulate(why_not)
    built_in = get(BUILT_IN)
    if can_simulate(order, built_in):  # else the caller raises an error
        note(f"{why_not}. So {BUILT_IN} simulates, without a container.")
    return _with_runtime(built_in, NONE)


def _production(pipeline: Pipeline, runtime: str, order: Order) -> tuple[Choice | None, str]:
    """Return the preferred pipeline if it can run now, else why not and what would help."""
    if not can_simulate(order, pipeline):
        return None, f"Pipeline {pipeline.name} does not simulate {order.channel}"
    engines, silent = _engines(runtime)
    for engine in engines:
        if not _missing(pipeline, engine):
            return Choice(pipeline, Containers(engine)), ""
    return None, _why_not(pipeline, engines, silent)


def _with_runtime(pipeline: Pipeline, runtime: str) -> Choice:
    """Choose the runtime of a pipeline that was given by name."""
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
        raise CannotSimulate(f"pipeline {pipeline.name} runs only in containers, not with --runtime none")
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
    """Return the engines that respond, and the errors of the others by program."""
    engines, silent = [], {}
    for program in PROGRAMS if runtime == AUTO else (runtime,):
        try:
            engines.append(Engine.probe(program))
        except EngineUnavailable as error:
            silent[program] = reason(error)
    return engines, silent


def _missing(pipeline: Pipeline, engine: Engine) -> tuple[str, ...]:
    """Return the images that are not on this machine."""
    images = dict.fromkeys(stage.image for stage in pipeline.stages if stage.image)
    return tuple(image for image in images if not engine.has_image(image))


def _why_not(pipeline: Pipeline, engines: Sequence[Engine], silent: Mapping[str, str]) -> str:
    """Return why a pipeline does not run in a container now, and what would help."""
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
    """Return the pipelines of all plugins that are not blocked."""
    return plugins.load(blocked).pipelines()
