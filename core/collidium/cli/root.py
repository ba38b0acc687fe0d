"""The root of the command: what it can do, and nothing of how."""

from __future__ import annotations

from dataclasses import dataclass

import click

from collidium import __version__
from collidium.cli.lazy import LazyGroup

#: Command -> module:attribute.
COMMANDS = {
    "check": "collidium.cli.check:check",
    "db": "collidium.cli.db:db",
    "demo": "collidium.cli.demo:demo",
    "leaderboard": "collidium.cli.leaderboard:leaderboard",
    "ledger": "collidium.cli.ledger:ledger",
    "login": "collidium.cli.login:login",
    "me": "collidium.cli.me:me",
    "plugin": "collidium.cli.plugin:plugin",
    "serve": "collidium.cli.serve:serve",
    "settings": "collidium.cli.settings:settings",
    "submit": "collidium.cli.submit:submit",
    "task": "collidium.cli.task:task",
    "truth": "collidium.cli.truth:truth",
}


@dataclass(slots=True)
class Session:
    """What all commands of one call share."""

    as_json: bool = False


@click.group(cls=LazyGroup, commands_at=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def collidium() -> None:
    """Share simulated collider events, and compare reconstruction models on benchmarks.

    \b
    See it all at work:        collidium demo
    Run a server:              collidium serve
    Send predictions:          collidium submit tracking predictions.parquet
    See who leads:             collidium leaderboard tracking

    Clients find the server by PLATFORM_BACKEND (default http://127.0.0.1:8000) and your token by HF_TOKEN
    or `collidium login`. `collidium settings list` shows what a server can be told.
    """
