"""Screens that lie on top of the one that opened them."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType

from collidium_tui.screen import ConsoleScreen

Data = TypeVar("Data")


class OpenedScreen(ConsoleScreen[Data], Generic[Data]):
    """Escape goes back to where it was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def action_back(self) -> None:
        self.app.pop_screen()
