"""``collidium worker``: follow requests without serving anybody."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Directory for all files.")
def worker(data_dir: Path | None) -> None:
    """Follow simulation requests and deliver webhooks until SIGTERM or Ctrl-C; serves nobody.

    Any number of workers and servers share the work, if they share settings and database.

    \b
    collidium worker
    PLATFORM_DATABASE_URL=postgres://collidium@db/collidium collidium worker
    """
    from collidium import settings
    from collidium.cli.server.following import follow

    given = {} if data_dir is None else {"data_dir": data_dir.absolute()}
    follow(settings.load(**given), lambda: click.echo("Following requests."))
