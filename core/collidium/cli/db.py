"""``collidium db``: the database's schema."""

from __future__ import annotations

import asyncio

import click

from collidium.cli.operate import quiet_settings
from collidium.cli.output import json_option, note, print_json
from collidium.cli.text import printable


@click.group()
def db() -> None:
    """Bring the database to this release's schema, or see whether it is there."""


@db.command()
def migrate() -> None:
    """Bring the schema of PLATFORM_DATABASE_URL up to this release. Safe to repeat.

    The SQLite file of a machine without that setting is brought up by `collidium serve` itself.

    \b
    collidium db migrate
    """
    from collidium import database

    asyncio.run(database.migrate(quiet_settings().database))
    note("The database has the schema of this release.")


@db.command()
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Say what is wrong with the schema; ends with 1 if anything is.

    \b
    collidium db check
    """
    from collidium import database

    problems = asyncio.run(database.check(quiet_settings().database))
    if as_json:
        print_json({"problems": problems})
    else:
        click.echo("\n".join(map(printable, problems)) or "The database has the schema of this release.")
    ctx.exit(1 if problems else 0)
