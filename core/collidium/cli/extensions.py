"""Commands that plugins provide through the hook ``collidium_commands``.

So that ``collidium --help`` can list them without importing third-party plugins, a distribution declares
them next to the plugin, command name = the plugin as in group ``collidium``::

    [project.entry-points.collidium]
    local_hub = "collidium_plugins.local_hub"

    [project.entry-points."collidium.commands"]
    user = "collidium_plugins.local_hub"

A command that is not declared works too, but the help does not list it, and finding it loads every plugin.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidium.cli.context import any_settings
from collidium.cli.output import note
from collidium.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click
    from textual.screen import Screen

    from collidium.plugins import Plugins

DECLARED = "collidium.commands"


def declared() -> dict[str, EntryPoint]:
    """The plugin of each declared command."""
    from collidium.plugins import GROUP

    points = entry_points()
    plugins = {point.value: point for point in points.select(group=GROUP)}
    commands = points.select(group=DECLARED)
    return {point.name: plugins[point.value] for point in commands if point.value in plugins}


def summaries() -> dict[str, str]:
    """A line of help for each declared command; of a third-party command its distribution.

    Imports the platform's own plugins only.
    """
    from collidium.plugins import Plugins, is_own, origin

    lines: dict[str, str] = {}
    for name, point in declared().items():
        command = Plugins([point]).commands().things.get(name) if is_own(point) else None
        lines[name] = command.get_short_help_str(limit=80) if command else f"From {origin(point.dist)[0]}."
    return lines


def find(name: str) -> click.Command | None:
    """The command, or None if no plugin provides it.

    Raises :class:`~collidium.errors.ConfigurationError` when the plugin that declares it does not load.
    """
    from collidium import plugins

    blocked = _blocked()
    point = declared().get(name)
    if point is not None:
        return _declared_command(plugins.Plugins([point], blocked), point, name)
    loaded = plugins.load(blocked)
    command: click.Command | None = loaded.commands().things.get(name)
    if command is None:
        warn_of(loaded)
    return command


def screens() -> tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]:
    """Screens of third-party plugins for the operator's console, by label, and the failures of their plugins.

    Imports every third-party plugin, and none of the platform's own: the console has their screens.
    """
    from collidium import plugins

    try:
        blocked = _blocked()
    except ConfigurationError as error:
        return {}, [error.detail]
    others = [point for point in entry_points(group=plugins.GROUP) if not plugins.is_own(point)]
    loaded = plugins.Plugins(others, blocked)
    return loaded.screens().things, loaded.failures


def warn_of(loaded: Plugins) -> None:
    """Warn of broken plugins, which may provide what is missing."""
    for failure in loaded.failures:
        note(f"Warning: {failure}")


def _blocked() -> Sequence[str]:
    """The plugins that the settings block; raises ConfigurationError for invalid settings."""
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
