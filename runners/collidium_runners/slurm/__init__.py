"""The runner ``slurm``: array jobs on a Slurm cluster, through its REST API or its commands."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from collidium.hookspecs import hookimpl
from collidium_runners.slurm.commands import CommandBackend
from collidium_runners.slurm.rest import RestBackend
from collidium_runners.slurm.runner import SlurmRunner

if TYPE_CHECKING:
    from collidium.contracts.runner import Runner
    from collidium.settings import Settings
    from collidium_runners.slurm.backend import SlurmBackend

__all__ = ["SlurmRunner", "collidium_runners"]


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The Slurm runner. Raises ConfigurationError for an invalid pipeline command."""
    return [SlurmRunner(_backend(settings), settings)]


def _backend(settings: Settings) -> SlurmBackend:
    if settings.slurm_url and settings.slurm_token_file:
        return RestBackend(
            settings.slurm_url,
            settings.slurm_api,
            settings.slurm_user or getpass.getuser(),
            settings.slurm_token_file,
            settings.slurm_timeout_seconds,
        )
    return CommandBackend(settings.slurm_configuration, settings.slurm_timeout_seconds)
