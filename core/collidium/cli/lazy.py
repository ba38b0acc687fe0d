"""A group that imports a command when it is used, and knows those of plugins without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

import click

from collidium.cli import extensions


class LazyGroup(click.Group):
    """The root group: its own commands by address, then those that plugins bring."""

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, str]] | None = None, **kwargs: Any
    ) -> None:
        """``sections``: title -> command -> ``module:attribute``, as the help shows them."""
        super().__init__(*args, **kwargs)
        self._sections = dict(sections or {})
        self._commands_at = {
            name: at for commands in self._sections.values() for name, at in commands.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._commands_at | extensions.declared())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        address = self._commands_at.get(cmd_name)
        if address is None:
            return extensions.find(cmd_name)
        module, _, attribute = address.partition(":")
        return cast(click.Command, getattr(import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            # Click knows only commands that are imported already.
            close = get_close_matches(args[0], self.list_commands(ctx))
            if not close:
                raise
            meant = " or ".join(f"`collidium {name}`" for name in close)
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant}?")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {
            title: {name: self._summary(ctx, name) for name in commands}
            for title, commands in self._sections.items()
        }
        if of_plugins := extensions.summaries():
            sections["Commands of plugins"] = of_plugins
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(sorted(lines.items()))

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=80) if command else ""
