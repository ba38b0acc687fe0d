"""The container runner: the pipeline in a container on the server's own machine, by docker or podman.

For labs with one big machine. Each job is one container named ``collidium-<request_id>``, which outlives the
process that started it; what is to be known of jobs lies below ``container-jobs`` in the data directory, so
that any process of this machine follows them. Every process that follows requests must run on this machine.
"""

from __future__ import annotations

from collidium.containers.engine import Engines
from collidium.contracts.runner import Runner
from collidium.hookspecs import hookimpl
from collidium.settings import Settings
from collidium_runners.command import PipelineCommand
from collidium_runners.container.pipelines import Allowance, Pipeline, PipelineEngines
from collidium_runners.spool.jobs import SpooledJobs
from collidium_runners.spool.runner import SpooledRunner
from collidium_runners.spool.spool import JobLimits

__all__ = ["ContainerRunner", "container_runner"]


class ContainerRunner(SpooledRunner):
    """Runs each job in a container on this machine."""

    name = "container"


def container_runner(settings: Settings) -> ContainerRunner:
    """The runner that the settings describe.

    Raises :class:`~collidium.errors.ConfigurationError` for a pipeline command that cannot be filled in.
    """
    pipeline = Pipeline(
        image=settings.container_image,
        command=PipelineCommand.parse(settings.pipeline_command),
        allowance=Allowance(settings.container_memory_bytes, settings.container_cpus),
    )
    limits = JobLimits(
        jobs=settings.container_jobs,
        memory_bytes=settings.container_memory_bytes,
        time_factor=settings.container_time_factor,
        extra_seconds=settings.container_extra_seconds,
        keep_seconds=settings.container_keep_days * 86_400,
    )
    engines = PipelineEngines(Engines(settings.container_runtime), pipeline)
    return ContainerRunner(SpooledJobs(settings.data_dir.absolute() / "container-jobs", engines, limits))


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The container runner."""
    return [container_runner(settings)]
