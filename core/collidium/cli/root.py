"""The root of the command: what it can do, and nothing of how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from collidium import __version__
from collidium.cli.lazy import LazyGroup

if TYPE_CHECKING:
    from textual.screen import Screen

#: Command -> module:attribute, of what asks a server over the network or needs none.
FOR_EVERYBODY = {
    "bench": "collidium.cli.bench:bench",
    "cancel": "collidium.cli.requests:cancel",
    "check": "collidium.cli.submit:check",
    "datasets": "collidium.cli.datasets:datasets",
    "demo": "collidium.cli.demo:demo",
    "estimate": "collidium.cli.estimate:estimate",
    "limits": "collidium.cli.estimate:limits",
    "leaderboard": "collidium.cli.leaderboard:leaderboard",
    "link": "collidium.cli.link:link",
    "login": "collidium.cli.login:login",
    "me": "collidium.cli.me:me",
    "models": "collidium.cli.models:models",
    "presets": "collidium.cli.estimate:presets",
    "requests": "collidium.cli.requests:requests",
    "simulate": "collidium.cli.simulate:simulate",
    "status": "collidium.cli.requests:status",
    "submissions": "collidium.cli.submissions:submissions",
    "submit": "collidium.cli.submit:submit",
    "tasks": "collidium.cli.tasks:tasks",
    "webhook": "collidium.cli.webhook:webhook",
}
#: The same, of what asks a server with the operators' secret.
FOR_OPERATORS = {
    "admin": "collidium.cli.admin:admin",
    "benchmark": "collidium.cli.benchmark:benchmark",
}
#: The same, of what works on the server's own settings, database and files.
ON_THE_SERVER = {
    "db": "collidium.cli.db:db",
    "ledger": "collidium.cli.ledger:ledger",
    "plugin": "collidium.cli.plugin:plugin",
    "serve": "collidium.cli.serve:serve",
    "settings": "collidium.cli.settings:settings",
    "task": "collidium.cli.task:task",
    "truth": "collidium.cli.truth:truth",
    "worker": "collidium.cli.serve:worker",
}
COMMANDS = FOR_EVERYBODY | FOR_OPERATORS | ON_THE_SERVER
SECTIONS = {
    "Commands for everybody": FOR_EVERYBODY,
    "Commands for operators": FOR_OPERATORS,
    "Commands on the server's machine": ON_THE_SERVER,
}


@dataclass(slots=True)
class Session:
    """What all commands of one call share."""

    as_json: bool = False
    #: Whether the call checks a file of predictions, which needs no advice to check it.
    checks: bool = False

    def screens(self) -> tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]:
        """Screens that plugins bring to the operator's console, by label, and what is wrong with any."""
        from collidium.cli.extensions import screens

        return screens()


@click.group(cls=LazyGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def collidium() -> None:
    """Share simulated collider events, order new ones, and compare reconstruction models on benchmarks.

    \b
    See it all at work:        collidium demo
    See what is asked:         collidium tasks
    Run a server:              collidium serve
    Make events here:          collidium simulate --preset ttbar-quick
    Order them from a server:  collidium simulate --remote --preset ttbar-quick --wait
    Send predictions:          collidium submit tracking predictions.parquet
    See who leads:             collidium leaderboard tracking

    Clients find the server by PLATFORM_BACKEND (default http://127.0.0.1:8000) and your token by HF_TOKEN
    or `collidium login`. `collidium settings list` shows what a server can be told.
    """
