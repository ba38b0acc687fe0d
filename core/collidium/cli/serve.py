"""``collidium serve``: run the platform's server."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--host", help="Address to listen on; default: PLATFORM_HOST, else 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port; 0 takes a free one. Default: PLATFORM_PORT, else 8000.",
)
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that share the port.")
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Directory for all files.")
def serve(host: str | None, port: int | None, workers: int | None, data_dir: Path | None) -> None:
    """Run the server until SIGTERM or Ctrl-C; requests in flight are finished first.

    Prints its address when it is ready. On a fresh machine it makes its database and an admin token, and
    says where the token is.

    \b
    collidium serve
    collidium serve --port 0 --data-dir ./try
    """
    from collidium import settings
    from collidium.server.run import run

    given = {"host": host, "port": port, "workers": workers, "data_dir": data_dir and data_dir.absolute()}
    run(settings.load(**{name: value for name, value in given.items() if value is not None}))


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
    from collidium.server.worker import follow

    given = {} if data_dir is None else {"data_dir": data_dir.absolute()}
    follow(settings.load(**given), lambda: click.echo("Following requests."))
