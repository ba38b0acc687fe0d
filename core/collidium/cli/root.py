"""The command ``collidium`` with its subcommands and those of plugins, each imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from collidium.cli.context import any_settings
from collidium.cli.failures import CHECK
from collidium.cli.output import note
from collidium.errors import ConfigurationError
from collidium.runtime.interrupts import Importing

if TYPE_CHECKING:
    from textual.screen import Screen

    from collidium.plugins import Plugins

DECLARED = "collidium.commands"


def declared() -> dict[str, EntryPoint]:
    """Return the entry point of the plugin that declares each command."""
    from collidium.plugins import GROUP

    points = entry_points()
    plugins = {point.value: point for point in points.select(group=GROUP)}
    commands = points.select(group=DECLARED)
    return {point.name: plugins[point.value] for point in commands if point.value in plugins}


def summaries() -> dict[str, str]:
    """Return a line of help for each declared command; for a third-party command its distribution.

    Only the platform's own plugins are imported.
    """
    from collidium.plugins import Plugins, is_own, origin

    lines: dict[str, str] = {}
    for name, point in declared().items():
        command = Plugins([point]).commands().things.get(name) if is_own(point) else None
        lines[name] = command.get_short_help_str(limit=80) if command else f"From {origin(point.dist)[0]}."
    return lines


def find(name: str) -> click.Command | None:
    """Return the command of a plugin, or None if no plugin provides it.

    Raises :class:`~collidium.errors.ConfigurationError` if the plugin that declares it does not load.
    """
    from collidium import plugins

    blocked = _blocked()
    point = declared().get(name)
    if point is not None:
        return _declared_command(plugins.Plugins([point], blocked), point, name)
    loaded = plugins.load(blocked)
    command: click.Command | None = loaded.commands().things.get(name)
    if command is None:
        warn_about_failures(loaded)
    return command


def screens() -> tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]:
    """Return the console screens of third-party plugins by label, and the errors of plugins that do not load.

    The platform's own plugins provide no screens and are not imported.
    """
    from collidium import plugins

    try:
        blocked = _blocked()
    except ConfigurationError as error:
        return {}, [error.detail]
    others = [point for point in entry_points(group=plugins.GROUP) if not plugins.is_own(point)]
    loaded = plugins.Plugins(others, blocked)
    return loaded.screens().things, loaded.failures


def warn_about_failures(loaded: Plugins) -> None:
    """Warn of plugins that do not load."""
    for failure in loaded.failures:
        note(f"Warning: {failure}")


def _blocked() -> Sequence[str]:
    """Return the plugins that the settings block. Raises ConfigurationError for invalid settings."""
    if not any_settings() and not Path(".env").is_file():
        return ()
    from collidium import settings

    return settings.load().plugins_blocked


def _declared_command(loaded: Plugins, point: EntryPoint, name: str) -> click.Command:
    command: click.Command | None = loaded.commands().things.get(name)
    if command is None:
        record = loaded.records[point.name]
        reason = record.error or ("it is blocked" if record.state == "blocked" else "it does not provide it")
        raise ConfigurationError(
            f"command {name!r} comes with plugin {point.name!r} of {record.distribution}: {reason}"
        )
    return command


class LazyGroup(click.Group):
    """The root group: the commands of :data:`SECTIONS`, and those of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS | declared())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        address = COMMANDS.get(cmd_name)
        if address is None:
            return find(cmd_name)
        module, _, attribute = address.partition(":")
        with Importing():
            return cast(click.Command, getattr(import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            # Click itself suggests only commands that it holds, not those that are imported on demand.
            close = get_close_matches(args[0], self.list_commands(ctx))
            if not close:
                raise
            meant = " or ".join(f"`collidium {name}`" for name in close)
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant}?")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {
            title: {name: self._summary(ctx, name) for name in commands}
            for title, commands in SECTIONS.items()
        }
        if of_plugins := summaries():
            sections["Commands of plugins"] = of_plugins
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(sorted(lines.items()))

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=80) if command else ""


#: Command -> module:attribute. These call a server over the network, or need none.
FOR_USERS = {
    "account": "collidium.cli.account:account",
    "bench": "collidium.cli.bench:bench",
    "bundle": "collidium.cli.reproduce:bundle",
    "cancel": "collidium.cli.requests:cancel",
    "challenge": "collidium.cli.challenge:challenge",
    "check": "collidium.cli.submissions:check",
    "datasets": "collidium.cli.datasets:datasets",
    "demo": "collidium.cli.demo:demo",
    "estimate": "collidium.cli.requests:estimate",
    "evaluations": "collidium.cli.evaluations:evaluations",
    "limits": "collidium.cli.requests:limits",
    "leaderboard": "collidium.cli.tasks:leaderboard",
    "link": "collidium.cli.submissions:link",
    "choose": "collidium.cli.submissions:choose",
    "login": "collidium.cli.account:login",
    "me": "collidium.cli.account:me",
    "model": "collidium.cli.model:model",
    "models": "collidium.cli.tasks:models",
    "presets": "collidium.cli.requests:presets",
    "output": "collidium.cli.requests:output",
    "publish-scores": "collidium.cli.submissions:publish_scores",
    "requests": "collidium.cli.requests:requests",
    "score": "collidium.cli.score:score",
    "simulate": "collidium.cli.simulate:simulate",
    "start": "collidium.cli.start:start",
    "status": "collidium.cli.requests:status",
    "submissions": "collidium.cli.submissions:submissions",
    "submit": "collidium.cli.submissions:submit",
    "tasks": "collidium.cli.tasks:tasks",
    "team": "collidium.cli.team:team",
    "withdraw": "collidium.cli.submissions:withdraw",
    "webhook": "collidium.cli.account:webhook",
}
#: These need an operator's token.
FOR_OPERATORS = {
    "admin": "collidium.cli.admin:admin",
    "benchmark": "collidium.cli.truth:benchmark",
    "operator": "collidium.cli.admin.actions:operator",
}
#: These use the settings, database and files of a server on this machine.
ON_THE_SERVER = {
    "backup": "collidium.cli.serve:backup",
    "db": "collidium.cli.serve:db",
    "doctor": "collidium.cli.settings:doctor",
    "ledger": "collidium.cli.serve:ledger",
    "plugin": "collidium.cli.settings:plugin",
    "restore": "collidium.cli.serve:restore",
    "seed": "collidium.cli.seed:seed",
    "serve": "collidium.cli.serve:serve",
    "settings": "collidium.cli.settings:settings",
    "task": "collidium.cli.task:task",
    "truth": "collidium.cli.truth:truth",
    "worker": "collidium.cli.serve:worker",
}
COMMANDS = FOR_USERS | FOR_OPERATORS | ON_THE_SERVER
SECTIONS = {
    "Commands for users": FOR_USERS,
    "Commands for operators": FOR_OPERATORS,
    "Commands on the server's machine": ON_THE_SERVER,
}


@dataclass(slots=True)
class CommandSession:
    """The state of one call of ``collidium``: the ``obj`` of click's context."""

    as_json: bool = False
    #: The command to recommend for checking a file of predictions; None: recommend none.
    check: str | None = CHECK

    def screens(self) -> tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]:
        """As the function :func:`screens`, for ``collidium tui``, which does not import this module."""
        return screens()


def _show_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from collidium.runtime.release import described

        click.echo(f"collidium {described()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def collidium() -> None:
    """Share simulated collider events, order new ones, and compare reconstruction models on benchmarks.

    \b
    See the whole loop:        collidium demo
    List benchmark tasks:      collidium tasks
    Run a server:              collidium serve
    Simulate events here:      collidium simulate --preset ttbar-quick
    Order them from a server:  collidium simulate --remote --preset ttbar-quick --wait
    Score them here:           collidium score tracking predictions.parquet --from ./ttbar
    Submit predictions:        collidium submit tracking predictions.parquet
    Show the leaderboard:      collidium leaderboard tracking

    Clients find the server by PLATFORM_BACKEND (default http://127.0.0.1:8000) and your token by HF_TOKEN
    or `collidium login`. `collidium settings list` shows the settings of a server.
    """
