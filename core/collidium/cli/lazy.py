"""A group that imports a command when it is used, and knows those of plugins without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click

from collidium.cli import extensions


class LazyGroup(click.Group):
    """The root group: its own commands by address, then those that plugins bring."""

    def __init__(self, *args: Any, commands_at: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._commands_at = dict(commands_at or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._commands_at | extensions.declared())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        address = self._commands_at.get(cmd_name)
        if address is None:
            return extensions.find(cmd_name)
        module, _, attribute = address.partition(":")
        return cast(click.Command, getattr(import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(ctx, name)) for name in sorted(self._commands_at)])
        if brought := extensions.summaries():
            with formatter.section("Commands of plugins"):
                formatter.write_dl(sorted(brought.items()))

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=80) if command else ""
