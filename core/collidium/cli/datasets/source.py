"""The arguments that all commands of the group share: which dataset, on which hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.context import check_environment
from collidium.cli.options import Command

if TYPE_CHECKING:
    from collidium.hub.sources import HubDataset


class SourceType(click.Path):
    """A directory, a repository or its address; shells complete directories."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


def source_argument(*, required: bool = True) -> Callable[[Command], Command]:
    """Add ``SOURCE`` to a command."""
    return click.argument("source", type=SourceType(file_okay=False), required=required)


def hub_options(command: Command) -> Command:
    """Add ``--hub`` and ``--revision`` to a command."""
    hub = click.option("--hub", metavar="URL", help="Address of the hub, if not that of the environment.")
    revision = click.option("--revision", metavar="NAME", help="Branch, tag or commit; default: main.")
    return hub(revision(command))


def config_option(command: Command) -> Command:
    """Add ``--config`` to a command."""
    return click.option(
        "--config", metavar="NAME", help="Dataset config, for example ttbar_pu200; default: the only one."
    )(command)


def locate_source(source: str, hub: str | None, revision: str | None) -> Path | HubDataset:
    """The dataset's directory or repository. Raises InvalidInput and ConfigurationError."""
    from collidium.hub.sources import locate

    check_environment()
    return locate(source, endpoint=hub, revision=revision)
