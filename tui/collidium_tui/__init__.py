"""The operators' console. It calls the platform only through `collidium.client`.

Plugins add screens, subclasses of :class:`ConsoleScreen`, with the hook ``collidium_screens``.

Every ``collidium`` command imports this package, so Textual is imported only when a name is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from collidium import hookspecs

if TYPE_CHECKING:
    import click

    from collidium_tui.screen import ConsoleScreen
    from collidium_tui.widgets.form import Field, Form, Question
    from collidium_tui.widgets.table import Column, Table
    from collidium_tui.widgets.text import plain

__all__ = ["Column", "ConsoleScreen", "Field", "Form", "Question", "Table", "collidium_commands", "plain"]

#: The modules of the exported names.
_ON_DEMAND: Final = {
    "Column": "widgets.table",
    "ConsoleScreen": "screen",
    "Field": "widgets.form",
    "Form": "widgets.form",
    "Question": "widgets.form",
    "Table": "widgets.table",
    "plain": "widgets.text",
}


@hookspecs.hookimpl
def collidium_commands() -> Sequence[click.Command]:
    """``collidium tui``."""
    from collidium_tui.command import tui

    return [tui]


def __getattr__(name: str) -> object:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
