"""The pages for browsers: front page, event display, simulation form, leaderboard and model zoo.

They access the platform only through its ``/v1`` API. Every ``collidium`` command imports this module, so it
imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium import hookspecs

if TYPE_CHECKING:
    from quart import Blueprint

    from collidium.settings import Settings


@hookspecs.hookimpl
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:
    from collidium_plugins.webapps.site import make_blueprints

    return make_blueprints(settings)


@hookspecs.hookimpl
def collidium_commands() -> Sequence[click.Command]:
    return [web]


@click.command()
@click.option("--backend", help="Address of the server; default: PLATFORM_BACKEND.")
@click.option("--host", help="Address to listen on; default: PLATFORM_HOST, else 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port; 0 for a free one. Default: PLATFORM_PORT, else 8000.",
)
@click.option(
    "--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Directory for sessions and keys."
)
def web(backend: str | None, host: str | None, port: int | None, data_dir: Path | None) -> None:
    """Serve the pages for browsers separately from their server, until SIGTERM or Ctrl-C.

    `collidium serve` serves the pages, too, so most installations do not need this command. Sessions are
    stored in PLATFORM_DATABASE_URL, by default an SQLite file in the data directory. If a server runs on the
    same machine, use another data directory.
    The server must permit the pages: PLATFORM_CORS_ORIGINS must have their address, and, if users sign in
    with its own hub, PLATFORM_OAUTH_REDIRECT_URIS that address followed by /web/callback.

    \b
    collidium web --backend https://api.example.org --port 8080
    """
    from collidium import settings
    from collidium_plugins.webapps.site import run

    given = {"host": host, "port": port, "data_dir": data_dir and data_dir.absolute()}
    run(settings.load(**{name: value for name, value in given.items() if value is not None}), backend)
