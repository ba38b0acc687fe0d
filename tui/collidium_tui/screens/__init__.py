"""The screens; each is imported when it is first shown, and a broken one breaks no other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from textual.screen import Screen

#: The label of each -> module:class, in the order of their keys.
SCREENS: Final = {
    "Overview": "collidium_tui.screens.overview:OverviewScreen",
    "Usage": "collidium_tui.screens.usage:UsageScreen",
    "Analytics": "collidium_tui.screens.analytics:AnalyticsScreen",
    "Requests": "collidium_tui.screens.requests.listing:RequestsScreen",
    "Accounts": "collidium_tui.screens.accounts.listing:AccountsScreen",
    "Benchmarks": "collidium_tui.screens.benchmarks.listing:BenchmarksScreen",
    "Audit": "collidium_tui.screens.audit:AuditScreen",
    "Incident": "collidium_tui.screens.incident.checklist:IncidentScreen",
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
            from collidium_tui.screens.broken import BrokenScreen

            return BrokenScreen(label, error)

    return made
