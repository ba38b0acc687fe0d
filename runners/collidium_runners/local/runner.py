"""The runner that the settings describe."""

from __future__ import annotations

from collidium.settings import Settings
from collidium_runners.local.engine import LocalEngine
from collidium_runners.pipeline.command import PipelineCommand
from collidium_runners.spool.jobs import SpooledJobs
from collidium_runners.spool.runner import SpooledRunner
from collidium_runners.spool.spool import JobLimits


class LocalRunner(SpooledRunner):
    """Runs each job as processes of this machine."""

    name = "local"
    #: To look costs next to nothing.
    poll_seconds = 1.0

    def __init__(self, engine: LocalEngine, limits: JobLimits) -> None:
        super().__init__(SpooledJobs(engine.directory, engine, limits))
        self._engine = engine

    def check(self) -> None:
        self._engine.check()


def local_runner(settings: Settings) -> LocalRunner:
    """The runner local.

    Raises :class:`~collidium.errors.ConfigurationError` for a pipeline command that cannot be filled in.
    """
    limits = JobLimits(
        jobs=settings.local_jobs,
        memory_bytes=settings.local_memory_bytes,
        time_factor=settings.local_time_factor,
        extra_seconds=settings.local_extra_seconds,
        keep_seconds=settings.local_keep_days * 86_400,
    )
    engine = LocalEngine(
        directory=settings.data_dir.absolute() / "local-jobs",
        command=PipelineCommand.parse(settings.pipeline_command),
        niceness=settings.local_niceness,
        memory_bytes=settings.local_memory_bytes,
    )
    return LocalRunner(engine, limits)
