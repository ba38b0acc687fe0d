"""The command ``collidium tui``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from collidium_tui.app import PluginScreens


class Command(Protocol):
    """The part of click's ``obj`` of ``collidium`` that this command uses."""

    @property
    def screens(self) -> PluginScreens: ...


@click.command()
@click.pass_obj
@click.option("--utc", is_flag=True, help="Show times in UTC; key u switches.")
def tui(command: Command, utc: bool) -> None:
    """Monitor and operate the platform from a terminal.

    Connects to the server at PLATFORM_BACKEND (default http://127.0.0.1:8000) with the operators' token of
    ADMIN_TOKEN, or asks for it and keeps it in memory. Press ? for help.

    \b
    collidium tui
    PLATFORM_BACKEND=https://platform.example.org collidium tui
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException(
            "the console needs a terminal; in scripts, use `collidium admin`, which prints the same data"
        )
    # Not at the top, because `collidium --help` imports this module.
    from collidium_tui import frames, logs
    from collidium_tui.app import Console
    from collidium_tui.session import Session
    from collidium_tui.widgets.text import Times

    frames.draw_in_ascii_if_needed()
    logs.log_to_file()
    session = Session(os.environ.get("PLATFORM_BACKEND"), os.environ.get("ADMIN_TOKEN"))
    console = Console(session, times=Times(utc=utc), plugin_screens=command.screens)
    console.run()
    if console.exit_message:
        raise click.ClickException(console.exit_message)
