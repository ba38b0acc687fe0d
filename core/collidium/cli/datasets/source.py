"""What all commands of the group are told in the same way: which dataset, on which hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from collidium.cli.calling import check_environment

if TYPE_CHECKING:
    from collidium.hub.sources import HubDataset

Command = TypeVar("Command", bound=Callable[..., Any])


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


def place_of(source: str, hub: str | None, revision: str | None) -> Path | HubDataset:
    """Where the dataset is. Raises InvalidInput and ConfigurationError."""
    from collidium.hub.sources import locate

    check_environment()
    return locate(source, endpoint=hub, revision=revision)
