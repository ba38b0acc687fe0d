"""The screens. Each is imported when it is first shown."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from collidium_tui import logs
from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient


#: Label -> module:class, in the order of the keys.
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

CreateScreen = Callable[[], Screen[Any]]


def import_screen(address: str) -> Screen[Any]:
    """Create the screen at ``module:class``."""
    module, _, name = address.partition(":")
    screen: Screen[Any] = getattr(import_module(module), name)()
    return screen


def create_or_explain(label: str, create: CreateScreen) -> Screen[Any]:
    """Create a screen, or one that shows why it cannot be created."""
    try:
        return create()
    except Exception as error:  # a plugin may raise anything
        return BrokenScreen(label, error)


class BrokenScreen(ConsoleScreen[None]):
    """Shows why a screen cannot be created."""

    def __init__(self, label: str, error: Exception) -> None:
        super().__init__()
        self.label = label  # type: ignore[misc]  # only this screen has a label per instance
        self._message = logs.log_error(error)

    def content(self) -> ComposeResult:
        yield Static(plain(f"This screen cannot be shown: {self._message}"))

    async def fetch(self, client: AsyncClient) -> None:
        """Fetch nothing."""

    def show(self, data: None) -> None:
        """Keep the message."""
