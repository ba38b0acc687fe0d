"""The screens; each is imported when it is first shown, and a broken one breaks no other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from collidium_tui import frame
from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient


#: The label of each -> module:class, in the order of their keys.
SCREENS: Final = {
    "Overview": "collidium_tui.screens.overview:OverviewScreen",
    "Usage": "collidium_tui.screens.analytics:UsageScreen",
    "Analytics": "collidium_tui.screens.analytics:AnalyticsScreen",
    "Requests": "collidium_tui.screens.requests:RequestsScreen",
    "Accounts": "collidium_tui.screens.accounts:AccountsScreen",
    "Benchmarks": "collidium_tui.screens.benchmarks:BenchmarksScreen",
    "Audit": "collidium_tui.screens.analytics:AuditScreen",
    "Incident": "collidium_tui.screens.incident:IncidentScreen",
}

Maker = Callable[[], Screen[Any]]


def at(address: str) -> Maker:
    """Imports the screen at ``module:class`` when it is first shown."""

    def make() -> Screen[Any]:
        module, _, name = address.partition(":")
        screen: Screen[Any] = getattr(import_module(module), name)()
        return screen

    return make


def or_broken(label: str, make: Maker) -> Maker:
    """Show the reason in place of a screen that cannot be created."""

    def made() -> Screen[Any]:
        try:
            return make()
        except Exception as error:
            return BrokenScreen(label, error)

    return made


class BrokenScreen(ConsoleScreen[None]):
    """Shows the error; the traceback is in the log."""

    def __init__(self, label: str, error: Exception) -> None:
        super().__init__()
        self.label = label  # type: ignore[misc]  # the one screen that is called differently each time
        self._message = frame.record(error)

    def content(self) -> ComposeResult:
        yield Static(plain(f"This screen cannot be shown: {self._message}"))

    async def fetch(self, client: AsyncClient) -> None:
        """There is nothing to ask for."""

    def show(self, data: None) -> None:
        """Nothing changes."""
