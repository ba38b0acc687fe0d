"""The settings of this runner, validated."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Final

from collidium.contracts.runner import Job, RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium.settings import Settings
from collidium_runners.batch.script import Allocation, Part, parts, script
from collidium_runners.command import PipelineCommand

_BEGIN: Final = "-----BEGIN "
_OTHERS: Final = 0o077
_NOT_SET_UP: Final = "the platform is not set up for its batch system; its operators see why"


@dataclass(frozen=True, slots=True)
class Site:
    """A machine behind the API, and what jobs ask of it."""

    settings: Settings

    @property
    def directory(self) -> PurePosixPath:
        """Where jobs write, on the machine."""
        return PurePosixPath(self.settings.sfapi_directory)

    def problems(self) -> list[str]:
        """What is missing or wrong, a line each."""
        found = []
        if find_spec("sfapi_client") is None:
            found.append("the runner sfapi needs sfapi_client: pip install 'collidium[sfapi]'")
        if not self.settings.sfapi_client_id:
            found.append("PLATFORM_SFAPI_CLIENT_ID is not set")
        if not self.directory.is_absolute():
            found.append("PLATFORM_SFAPI_DIRECTORY is not set to an absolute path")
        for check in (self.key, self._pipeline):
            try:
                check()
            except ConfigurationError as error:
                found.append(error.detail)
        return found

    def require(self) -> None:
        """Raise RunnerUnavailable if anything is wrong: a retry works once it is fixed."""
        if problems := self.problems():
            raise RunnerUnavailable(_NOT_SET_UP) from ConfigurationError("; ".join(problems))

    def key(self) -> str:
        """The private key, as PEM; what stands before it, such as the client's id, is allowed.

        Raises ConfigurationError, which says nothing of what is in the file.
        """
        key_file = self.settings.sfapi_key_file
        if key_file is None:
            raise ConfigurationError("PLATFORM_SFAPI_KEY_FILE is not set")
        try:
            if key_file.stat().st_mode & _OTHERS:
                raise ConfigurationError(f"PLATFORM_SFAPI_KEY_FILE: others may read it: chmod 600 {key_file}")
            text = key_file.read_text()
        except OSError as error:
            raise ConfigurationError(f"PLATFORM_SFAPI_KEY_FILE: {key_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            text = ""
        if "PRIVATE KEY" not in text.partition(_BEGIN)[2].partition("\n")[0]:
            raise ConfigurationError(f"PLATFORM_SFAPI_KEY_FILE: {key_file} holds no private key as PEM")
        return text

    def split(self, job: Job) -> tuple[Part, ...]:
        """The parts of the job."""
        return parts(job, self.settings.sfapi_events_per_part)

    def script(self, job: Job, cut: tuple[Part, ...]) -> str:
        """The batch script; raises RunnerRefused for a job that cannot be written down."""
        allocation = Allocation(
            account=self.settings.sfapi_account,
            qos=self.settings.sfapi_qos,
            constraint=self.settings.sfapi_constraint,
        )
        try:
            return script(job, cut, self._pipeline(), self.directory, allocation)
        except ConfigurationError as error:
            raise RunnerUnavailable(_NOT_SET_UP) from error

    def _pipeline(self) -> PipelineCommand:
        return PipelineCommand.parse(self.settings.pipeline_command)
