"""``collidium tui``: the console in a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from collidium_tui.app import PluginScreens


class Command(Protocol):
    """What this command uses of the context of ``collidium``."""

    @property
    def screens(self) -> PluginScreens: ...


@click.command()
@click.pass_obj
@click.option("--utc", is_flag=True, help="Show times in UTC; a key changes it later.")
def tui(command: Command, utc: bool) -> None:
    """Run the platform from a terminal: see what is wrong, and stop it.

    It asks the server at PLATFORM_BACKEND (default http://127.0.0.1:8000) with the operators' secret:
    ADMIN_TOKEN, or what you type into its login box, which is kept in memory alone. Press ? in it for help.

    \b
    collidium tui
    PLATFORM_BACKEND=https://platform.example.org collidium tui
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException(
            "the console needs a terminal; from scripts use `collidium admin`, which prints what it shows"
        )
    # Imported here, because `collidium --help` imports this module.
    from collidium_tui import frame
    from collidium_tui.app import Console
    from collidium_tui.session import Session
    from collidium_tui.widgets.text import Times

    frame.log_to_file()
    session = Session(os.environ.get("PLATFORM_BACKEND"), os.environ.get("ADMIN_TOKEN"))
    console = Console(session, times=Times(utc=utc), plugin_screens=command.screens)
    console.run()
    if console.exit_message:
        raise click.ClickException(console.exit_message)
