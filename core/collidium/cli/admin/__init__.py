"""``collidium admin``: reports and actions of operators, with ADMIN_TOKEN; the console offers the same."""

from __future__ import annotations

import click

from collidium.cli.admin.actions import ban, freeze, grant, refund, unban, unfreeze
from collidium.cli.admin.reports import audit, channels, daily, failures, requests, usage


@click.group()
def admin() -> None:
    """Operate a server from anywhere; needs ADMIN_TOKEN.

    On a terminal, destructive commands ask for confirmation; --yes skips that.
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
