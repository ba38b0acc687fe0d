"""Shown in place of a screen that cannot be created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Static

from collidium_tui.frame import faults
from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient


class BrokenScreen(ConsoleScreen[None]):
    """Shows the error; the traceback is in the log."""

    def __init__(self, label: str, error: Exception) -> None:
        super().__init__()
        self.label = label  # type: ignore[misc]  # the one screen that is called differently each time
        self._message = faults.record(error)

    def content(self) -> ComposeResult:
        yield Static(plain(f"This screen cannot be shown: {self._message}"))

    async def fetch(self, client: AsyncClient) -> None:
        """There is nothing to ask for."""

    def show(self, data: None) -> None:
        """Nothing changes."""
