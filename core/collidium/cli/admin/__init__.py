"""``collidium admin``: what operators ask and do, with ADMIN_TOKEN. The console does the same on a screen."""

from __future__ import annotations

import click

from collidium.cli.admin.deeds import ban, freeze, grant, unban, unfreeze
from collidium.cli.admin.refund import refund
from collidium.cli.admin.reports import channels, daily, failures, usage
from collidium.cli.admin.requests import audit, requests


@click.group()
def admin() -> None:
    """Look after a server from anywhere; needs ADMIN_TOKEN.

    What takes something away asks first where somebody sits at the terminal; --yes spares that.
    """


for command in (
    usage,
    channels,
    daily,
    failures,
    requests,
    freeze,
    unfreeze,
    grant,
    ban,
    unban,
    refund,
    audit,
):
    admin.add_command(command)
