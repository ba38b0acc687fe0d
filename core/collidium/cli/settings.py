"""``collidium settings``, ``doctor`` and ``plugin``: the configuration of a server, and its checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import quiet_settings
from collidium.cli.options import json_option
from collidium.cli.output import (
    cell,
    note,
    plain,
    print_table,
    show_items,
    show_value,
    width_of,
    wrapped,
)

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from collidium.plugins import Provided

#: Columns of text where there is no terminal.
WIDTH: Final = 100
#: Settings that only clients read.
CLIENT_SETTINGS = {
    "PLATFORM_BACKEND": ("http://127.0.0.1:8000", "Address of the server that clients call."),
    "HF_TOKEN": (None, "The user's hub token; default: the one that `collidium login` saved."),
}
COLUMNS: Final = {"check": "name", "status": "status", "found": "found", "what to do": "advice"}


@dataclass(frozen=True, slots=True)
class SettingStatus:
    """A setting and its value; ``origin`` is ``environment``, ``.env`` or ``default``."""

    name: str
    value: object
    origin: str
    default: object
    help: str


@click.group()
def settings() -> None:
    """Show the settings, read from the environment or a `.env` file."""


@settings.command("list")
@json_option
def list_() -> None:
    """List every setting with its value, source, default and meaning.

    \b
    collidium settings list
    """
    show_value([*_of_server(), *_of_clients()], _print_settings)


def _print_settings(found: Sequence[SettingStatus]) -> None:
    """Print a setting per line with its value, and its default if that differs; below, its meaning."""
    width = width_of(sys.stdout) or WIDTH
    indent = " " * 4
    for status in found:
        value, default = (_readable(status.name, each) for each in (status.value, status.default))
        origin = status.origin if value == default else f"{status.origin}, default {cell(default)}"
        click.echo(wrapped(f"{status.name}  {cell(value)}  ({origin})", width, rest=indent))
        click.echo(wrapped(status.help, width, first=indent, rest=indent))


def _of_server() -> Iterator[SettingStatus]:
    from collidium.settings import PREFIX, Settings

    loaded = quiet_settings()
    in_file = _names_in_file()
    for field, info in Settings.model_fields.items():
        name = str(info.validation_alias or PREFIX + field.upper())
        yield SettingStatus(
            name=name,
            value=_shown(getattr(loaded, field)),
            origin=_origin(name, in_file),
            default=_shown(_default(info)),
            help=info.description or "",
        )


def _of_clients() -> Iterator[SettingStatus]:
    from collidium.settings import MASK

    for name, (default, explanation) in CLIENT_SETTINGS.items():
        value = os.environ.get(name) or default
        secret = name == "HF_TOKEN" and value is not None
        yield SettingStatus(
            name, MASK if secret else _shown(value), _origin(name, set()), default, explanation
        )


def _default(info: FieldInfo) -> Any:
    return info.get_default(call_default_factory=True, validated_data={})


def _shown(value: object) -> object:
    from pydantic import SecretStr

    from collidium.settings import MASK, as_written, without_password

    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, str):
        return without_password(value)
    value = as_written(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _readable(name: str, value: object) -> object:
    """Format bytes in the largest unit that gives a whole number."""
    if not name.endswith("_BYTES") or not isinstance(value, int):
        return value
    power = next(power for power in (3, 2, 1, 0) if power == 0 or value % 1024**power == 0)
    return f"{value // 1024**power} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


def _names_in_file() -> set[str]:
    from dotenv import dotenv_values

    return {name.upper() for name in dotenv_values(".env")} if Path(".env").is_file() else set()


def _origin(name: str, in_file: set[str]) -> str:
    from collidium.settings import RENAMED

    names = {name, *(old for old, new in RENAMED.items() if new == name)}
    if names & {variable.upper() for variable in os.environ}:
        return "environment"
    return ".env" if names & in_file else "default"


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Check the configuration of this machine; exits with 1 if a check fails.

    Checks libraries, data directory, plugins, secrets, storage, hub, proxy, runner, scoring, models,
    database, clock and other processes. Warnings other than of libraries are problems only for several
    machines.

    \b
    collidium doctor
    collidium doctor --json
    """
    import asyncio

    from collidium import plugins
    from collidium.server.doctor import examine

    settings = quiet_settings()
    checks = asyncio.run(examine(settings, plugins.load(settings.plugins_blocked)))
    show_items(checks, COLUMNS)
    ctx.exit(1 if any(check.status == "failed" for check in checks) else 0)


@click.group()
def plugin() -> None:
    """Show the installed plugins."""


@plugin.command("list")
@json_option
def list_plugins() -> None:
    """List all plugins with what they provide, or why they do not load.

    Exits with 0 even if a plugin does not load, because the platform runs without it.

    \b
    collidium plugin list
    """
    from collidium import plugins
    from collidium.api.app import create_app

    settings = quiet_settings()
    loaded = plugins.load(settings.plugins_blocked)
    kinds: list[Provided[Any]] = [
        loaded.tasks(),
        loaded.pipelines(),
        loaded.runners(settings),
        loaded.storages(settings),
        loaded.identity_providers(settings),
        loaded.executors(settings),
        loaded.blueprints(settings),
        loaded.commands(),
        loaded.screens(),
    ]
    # Mounts the blueprints as a server does, which records those that fail.
    create_app(settings, loaded)
    brings: dict[str, list[str]] = {name: [] for name in loaded.records}
    for provided in kinds:
        for name, origin in provided.origins.items():
            brings[origin].append(f"{provided.kind} {name}")
    records = [{**plain(record), "brings": brings[name]} for name, record in loaded.records.items()]
    show_value({"plugins": records, "clashes": loaded.clashes}, _print_plugins)


def _print_plugins(found: dict[str, Any]) -> None:
    print_table(
        ("plugin", "from", "version", "state", "provides"),
        (
            (one["name"], one["distribution"], one["version"], one["state"], one["error"] or one["brings"])
            for one in found["plugins"]
        ),
    )
    for clash in found["clashes"]:
        note(f"Clash: {clash}")
