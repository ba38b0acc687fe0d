"""The runner ``slurm``: simulates events on a Slurm cluster, by its REST API or its commands."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from collidium.hookspecs import hookimpl
from collidium_runners.batch.script import Allocation
from collidium_runners.command import PipelineCommand
from collidium_runners.slurm.commands import CommandBackend
from collidium_runners.slurm.rest import RestBackend, TokenFile
from collidium_runners.slurm.runner import Plan, SlurmRunner

if TYPE_CHECKING:
    from collidium.contracts.runner import Runner
    from collidium.settings import Settings
    from collidium_runners.slurm.backend import SlurmBackend

__all__ = ["SlurmRunner", "collidium_runners"]


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The Slurm runner; raises ConfigurationError for a command that cannot be filled in."""
    allocation = Allocation(
        partition=settings.slurm_partition,
        account=settings.slurm_account,
        qos=settings.slurm_qos,
        constraint=settings.slurm_constraint,
        cpus=settings.slurm_cpus_per_part,
        parts_per_node=settings.slurm_parts_per_node,
    )
    plan = Plan(
        PipelineCommand.parse(settings.pipeline_command),
        (settings.slurm_directory or settings.data_dir / "slurm").absolute(),
        allocation,
        settings.slurm_events_per_part,
        settings.slurm_maximum_parts,
        directory_is_given=settings.slurm_directory is not None,
    )
    return [SlurmRunner(_backend(settings), plan)]


def _backend(settings: Settings) -> SlurmBackend:
    if settings.slurm_url and settings.slurm_token_file:
        return RestBackend(
            settings.slurm_url,
            settings.slurm_api,
            settings.slurm_user or getpass.getuser(),
            TokenFile(settings.slurm_token_file),
            settings.slurm_timeout_seconds,
        )
    return CommandBackend(settings.slurm_configuration, settings.slurm_timeout_seconds)
