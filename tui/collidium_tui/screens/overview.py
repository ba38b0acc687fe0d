"""Overview: what is wrong, what is under way, and how much of the month is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.findings import findings, summary
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Overview

Data = TypeVar("Data")


class OverviewScreen(ConsoleScreen["Overview"]):
    """The platform at one look; what needs an operator comes first, in words."""

    label = "Overview"
    about = "The platform at one look: what needs your attention first, then a summary."

    def content(self) -> ComposeResult:
        with VerticalScroll(id="overview"):
            yield Static(id="findings")
            yield Static(id="standing")

    async def fetch(self, client: AsyncClient) -> Overview:
        return await client.admin_overview()

    def show(self, data: Overview) -> None:
        found = findings(data, self.times)
        text = "\n".join(f"[!] {finding}" for finding in found) or "Nothing needs your attention."
        panel = self.query_one("#findings", Static)
        panel.set_class(bool(found), "amiss")
        panel.update(plain(text))
        width = max(map(len, (name for name, _ in summary(data, self.times))))
        lines = (f"{name:<{width}}  {value}" for name, value in summary(data, self.times))
        self.query_one("#standing", Static).update(plain("\n".join(lines)))


class OpenedScreen(ConsoleScreen[Data], Generic[Data]):
    """Escape goes back to where it was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def action_back(self) -> None:
        self.app.pop_screen()
