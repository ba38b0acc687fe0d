"""``collidium datasets``: events on a hub or in a directory. Each command has a module of its own here."""

from __future__ import annotations

import click

from collidium.cli.datasets.download import download
from collidium.cli.datasets.export import export
from collidium.cli.datasets.info import info
from collidium.cli.datasets.listing import list_
from collidium.cli.datasets.mix import mix
from collidium.cli.datasets.publish import publish
from collidium.cli.datasets.tables import tables


@click.group()
def datasets() -> None:
    """See which events a hub or a directory has, and get what you need of them.

    A SOURCE is a directory, a repository NAMESPACE/NAME of the hub, or the repository's address. The hub is
    the one of --hub, else of PLATFORM_HUB_URL, else of HF_ENDPOINT, else the local hub of PLATFORM_BACKEND.
    Private repositories need HF_TOKEN or `collidium login`.
    """


for command in (list_, tables, info, download, export, mix, publish):
    datasets.add_command(command)
