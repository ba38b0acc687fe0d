"""Screens of several lists behind tabs, of which only the one that is seen is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import TabbedContent, TabPane, Tabs

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.table import Table

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Page

Head = TypeVar("Head")


@dataclass(frozen=True, slots=True)
class Shown(Generic[Head]):
    """What one look brings: what stands above the lists, and a page of the list that is seen."""

    head: Head
    seen: Table[Any]
    page: Page[Any]


class ListsScreen(ConsoleScreen[Shown[Head]], Generic[Head]):
    """It says what its :meth:`tables` are, what it asks for in :meth:`look`, and how the head is shown."""

    CSS = "TabbedContent { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "next_list", "Next list")]

    def tables(self) -> Iterable[Table[Any]]:
        """The lists; what the rows of each are called stands on its tab."""
        raise NotImplementedError

    async def look(self, client: AsyncClient, seen: Table[Any]) -> tuple[Head, Page[Any]]:
        """What stands above the lists, and the page that ``seen.cursor`` asks for."""
        raise NotImplementedError

    def show_head(self, head: Head) -> None:
        """Show what stands above the lists."""

    def lists(self) -> ComposeResult:
        """The tabs, to be put into ``content``."""
        with TabbedContent():
            for table in self.tables():
                with TabPane(table.of.capitalize()):
                    yield table

    @property
    def seen(self) -> Table[Any]:
        """The list that is seen."""
        pane = self.query_one(TabbedContent).active_pane
        return (pane or self).query(Table).first()

    async def fetch(self, client: AsyncClient) -> Shown[Head]:
        seen = self.seen
        head, page = await self.look(client, seen)
        return Shown(head, seen, page)

    def show(self, data: Shown[Head]) -> None:
        self.show_head(data.head)
        data.seen.show_page(data.page)

    def on_tabbed_content_tab_activated(self) -> None:
        self.seen.focus()
        self.refresh_now()

    def action_next_list(self) -> None:
        self.query_one(TabbedContent).query_one(Tabs).action_next_tab()
