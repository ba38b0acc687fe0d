"""The runner ``container``: runs the pipeline in containers of docker or podman on the server's machine.

Each job is a container named ``collidium-<request_id>``, which may outlive the process that started it. The
state of jobs is below ``container-jobs`` in the data directory, so that any process of this machine can
follow them. All processes that follow requests must run on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from collidium.contracts.runner import PROGRESS_FILE, Job, Runner, RunnerRefused, RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium.hookspecs import hookimpl
from collidium.runtime.containers import Container, Engine, Engines, bind, confined
from collidium.runtime.containers import options as as_options
from collidium.settings import Settings
from collidium_runners import command
from collidium_runners.command import PipelineCommand, job_name
from collidium_runners.spool.engine import JobFolders, JobLimits, Run
from collidium_runners.spool.jobs import SpooledJobs, SpooledRunner

#: Paths in a container: the folder for its output, and one for temporary files.
OUTPUT: Final = "/output"
SCRATCH: Final = "/tmp"  # noqa: S108 -- the container's own

_LOG_SIZE: Final = "10m"
_PROCESSES: Final = 4096
#: The exit code that engines report for a container whose end they did not see.
_UNSEEN: Final = 255


def run_of(container: Container) -> Run:
    """Return the state of a container's job."""
    doubt = "or the machine was restarted" if container.exit_code == _UNSEEN else ""
    return Run(**asdict(container), doubt=doubt)


def options(name: str, settings: Settings, output: Path, scratch: Path, *, rootless: bool) -> list[str]:
    """Return the options of ``create``: the container sees only the two folders of the server.

    Raises :class:`RunnerUnavailable` for folders that cannot be mounted.
    """
    words = {
        "--name": [name],
        "--label": ["collidium.job=1"],
        "--pids-limit": [str(_PROCESSES)],
        # The same limit with swap means no swap.
        "--memory": [str(settings.container_memory_bytes)],
        "--memory-swap": [str(settings.container_memory_bytes)],
        "--cpus": [f"{settings.container_cpus:g}"] if settings.container_cpus else [],
        "--log-driver": ["json-file"],
        "--log-opt": [f"max-size={_LOG_SIZE}"],
        "--workdir": [SCRATCH],
        "--env": [
            f"HOME={SCRATCH}",
            f"TMPDIR={SCRATCH}",
            f"{PROGRESS_FILE}={SCRATCH}/{command.NAME}",
        ],
    }
    mounts = [_mounted(output, OUTPUT), _mounted(scratch, SCRATCH)]
    return [*confined(rootless=rootless), "--read-only", *as_options(words), *mounts]


def _mounted(source: Path, target: str) -> str:
    try:
        return bind(source, target)
    except ValueError as error:
        wrong = ConfigurationError(f"PLATFORM_DATA_DIR: {error}")
        raise RunnerUnavailable("the job's folders cannot be mounted") from wrong


_NO_IMAGE: Final = "the machine has no pipeline to run; the platform's operators see why"


@dataclass(frozen=True, slots=True)
class PipelineContainers:
    """Runs the pipeline in containers of one engine."""

    engine: Engine
    settings: Settings
    command: PipelineCommand
    missing: str = "its container was removed before it ended"

    @property
    def program(self) -> str:
        return self.engine.program

    def start(self, job: Job, folders: JobFolders) -> None:
        if self._must_be_started(job, folders):
            self.engine.start(job_name(job.request_id), folders.unmounted(job.request_id))

    def stop(self, name: str) -> None:
        self.engine.stop(name)

    def remove(self, name: str) -> None:
        self.engine.remove(name)

    def inspect(self, names: Sequence[str]) -> Mapping[str, Run]:
        return {name: run_of(container) for name, container in self.engine.inspect(names).items()}

    def log(self, name: str) -> list[str]:
        return self.engine.log(name)

    def _must_be_started(self, job: Job, folders: JobFolders) -> bool:
        """Create the container if it does not exist; return whether it must be started."""
        name = job_name(job.request_id)
        made = self.engine.inspect([name]).get(name)
        if made is None:
            try:
                self._create(job, folders)
            except RunnerRefused:
                # The client of a killed process may have created it in the meantime.
                made = self.engine.inspect([name]).get(name)
                if made is None:
                    raise
        return made is None or made.is_new

    def _create(self, job: Job, folders: JobFolders) -> None:
        output, scratch = folders.make(job.request_id)
        name = job_name(job.request_id)
        self.engine.create(
            options(name, self.settings, output, scratch, rootless=self.engine.rootless),
            self.settings.container_image,
            self.command.of_job(job, OUTPUT),
        )


class PipelineEngines:
    """The container engines of this machine, for the pipeline of the settings."""

    def __init__(self, settings: Settings) -> None:
        """Raise ConfigurationError for an invalid pipeline command."""
        self._engines = Engines(settings.container_runtime)
        self._settings = settings
        self._command = PipelineCommand.parse(settings.pipeline_command)

    def choose(self) -> PipelineContainers:
        """Return the engine for new jobs. Raises RunnerUnavailable without an engine or the image."""
        engine = self._engines.choose()
        image = self._settings.container_image
        if not image:
            raise RunnerUnavailable(_NO_IMAGE) from ConfigurationError("PLATFORM_CONTAINER_IMAGE is not set")
        if not engine.has_image(image):
            missing = f"{engine.program} has no image {image}: fetch it with `{engine.program} pull {image}`"
            raise RunnerUnavailable(_NO_IMAGE) from ConfigurationError(missing)
        return PipelineContainers(engine, self._settings, self._command)

    def get(self, program: str) -> PipelineContainers:
        """Return the engine of an existing job."""
        return PipelineContainers(self._engines.get(program), self._settings, self._command)


class ContainerRunner(SpooledRunner):
    """Runs each job in a container on this machine."""

    name = "container"


def container_runner(settings: Settings) -> ContainerRunner:
    """Return the runner for the settings.

    Raises :class:`~collidium.errors.ConfigurationError` for an invalid pipeline command.
    """
    limits = JobLimits(
        jobs=settings.container_jobs,
        memory_bytes=settings.container_memory_bytes,
        time_factor=settings.container_time_factor,
        extra_seconds=settings.container_extra_seconds,
        keep_seconds=settings.container_keep_days * 86_400,
    )
    directory = settings.data_dir.absolute() / "container-jobs"
    return ContainerRunner(SpooledJobs(directory, PipelineEngines(settings), limits))


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The container runner."""
    return [container_runner(settings)]
