"""``collidium doctor``: whether a configuration works, and what would break on two machines."""

from __future__ import annotations

from typing import Final

import click

from collidium.cli.context import quiet_settings
from collidium.cli.options import json_option
from collidium.cli.output import show_items

COLUMNS: Final = {"check": "name", "status": "status", "found": "found", "what to do": "advice"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check the whole configuration of this machine; ends with 1 if a check fails.

    Tries data directory, plugins, secrets, storage, hub, proxy, runner, scoring, models, database, clock and
    other processes. A warning is what keeps a second machine from sharing the work.

    \b
    collidium doctor
    collidium doctor --json
    """
    import asyncio

    from collidium import plugins
    from collidium.server.doctor import examine

    settings = quiet_settings()
    checks = asyncio.run(examine(settings, plugins.load(settings.plugins_blocked)))
    show_items(checks, COLUMNS, as_json=as_json)
    ctx.exit(1 if any(check.status == "failed" for check in checks) else 0)
