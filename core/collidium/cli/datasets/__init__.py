"""``collidium datasets``: events on a hub or in a directory."""

from __future__ import annotations

import click

from collidium.cli.datasets.download import download, export
from collidium.cli.datasets.listing import info, list_, tables
from collidium.cli.datasets.publish import mix, publish


@click.group()
def datasets() -> None:
    """List, download, export, mix and publish datasets.

    SOURCE is a directory, a repository NAMESPACE/NAME of the hub, or the repository's address. The hub is
    that of --hub, PLATFORM_HUB_URL or HF_ENDPOINT, in this order, else the local hub of PLATFORM_BACKEND.
    Private repositories need HF_TOKEN or `collidium login`.
    """


for command in (list_, tables, info, download, export, mix, publish):
    datasets.add_command(command)
