"""Commands that plugins bring through the hook ``collidium_commands``.

So that ``collidium --help`` can name them without importing anybody's plugin, a distribution declares them
beside the plugin, command name = the plugin as it stands in group ``collidium``::

    [project.entry-points.collidium]
    local_hub = "collidium_plugins.local_hub"

    [project.entry-points."collidium.commands"]
    user = "collidium_plugins.local_hub"

A command that is not declared works all the same; the help does not list it, and finding it loads every
plugin.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidium.cli.calling import any_settings
from collidium.cli.output import note
from collidium.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click
    from textual.screen import Screen

    from collidium.plugins import Plugins

DECLARED = "collidium.commands"


def declared() -> dict[str, EntryPoint]:
    """The plugin that brings each declared command."""
    from collidium.plugins import GROUP

    plugins = {point.value: point for point in entry_points(group=GROUP)}
    return {
        point.name: plugins[point.value] for point in entry_points(group=DECLARED) if point.value in plugins
    }


def summaries() -> dict[str, str]:
    """A line of help for each declared command: its own, or of a stranger's where it is from.

    Only the platform's own plugins are imported for it.
    """
    from collidium.plugins import Plugins, is_own

    lines: dict[str, str] = {}
    for name, point in declared().items():
        command = Plugins([point]).commands().things.get(name) if is_own(point) else None
        origin = f"From {point.dist.name if point.dist else 'unknown'}."
        lines[name] = command.get_short_help_str(limit=80) if command else origin
    return lines


def find(name: str) -> click.Command | None:
    """The command, or None when no plugin brings it.

    Raises :class:`~collidium.errors.ConfigurationError` when the plugin that declares it does not load.
    """
    from collidium import plugins

    blocked = _blocked()
    point = declared().get(name)
    if point is not None:
        return _promised(plugins.Plugins([point], blocked), point, name)
    loaded = plugins.load(blocked)
    command: click.Command | None = loaded.commands().things.get(name)
    if command is None:
        warn_of(loaded)
    return command


def screens() -> tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]:
    """Screens that other distributions bring to the operator's console, by label, and what is wrong with any.

    Every plugin of theirs is imported for it, and none of the platform's own: the console has its screens.
    """
    from collidium import plugins

    try:
        blocked = _blocked()
    except ConfigurationError as error:
        return {}, [error.detail]
    strange = [point for point in entry_points(group=plugins.GROUP) if not plugins.is_own(point)]
    loaded = plugins.Plugins(strange, blocked)
    return loaded.screens().things, loaded.failures


def warn_of(loaded: Plugins) -> None:
    """Say which plugins are broken: what is missing may be theirs."""
    for failure in loaded.failures:
        note(f"Warning: {failure}")


def _blocked() -> Sequence[str]:
    """The plugins that the settings block; raises ConfigurationError when something is wrong with them."""
    if not any_settings() and not Path(".env").is_file():
        return ()
    from collidium import settings

    return settings.load().plugins_blocked


def _promised(loaded: Plugins, point: EntryPoint, name: str) -> click.Command:
    command: click.Command | None = loaded.commands().things.get(name)
    if command is None:
        record = loaded.records[point.name]
        reason = record.error or ("it is blocked" if record.state == "blocked" else "it does not bring it")
        raise ConfigurationError(
            f"command {name!r} comes with plugin {point.name!r} of {record.distribution}: {reason}"
        )
    return command
