"""Screens of several lists in tabs; only the active one is fetched."""

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
class ListData(Generic[Head]):
    """The result of a fetch: the data above the lists, and a page of the active list."""

    head: Head
    table: Table[Any]
    page: Page[Any]


class ListsScreen(ConsoleScreen[ListData[Head]], Generic[Head]):
    """A subclass defines its :meth:`tables`, :meth:`fetch_list` and how the head is shown."""

    CSS = "TabbedContent { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "next_list", "Next list")]

    def tables(self) -> Iterable[Table[Any]]:
        """The lists; ``of`` of each is the title of its tab."""
        raise NotImplementedError

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[Head, Page[Any]]:
        """The data above the lists, and the page at ``table.cursor``."""
        raise NotImplementedError

    def show_head(self, head: Head) -> None:
        """Show the data above the lists."""

    def lists(self) -> ComposeResult:
        """The tabs, for ``content``."""
        with TabbedContent():
            for table in self.tables():
                with TabPane(table.of.capitalize()):
                    yield table

    @property
    def active_table(self) -> Table[Any]:
        """The list of the active tab."""
        pane = self.query_one(TabbedContent).active_pane
        return (pane or self).query(Table).first()

    async def fetch(self, client: AsyncClient) -> ListData[Head]:
        table = self.active_table
        head, page = await self.fetch_list(client, table)
        return ListData(head, table, page)

    def show(self, data: ListData[Head]) -> None:
        self.show_head(data.head)
        data.table.show_page(data.page)

    def on_tabbed_content_tab_activated(self) -> None:
        self.active_table.focus()
        self.refresh_now()

    def action_next_list(self) -> None:
        self.query_one(TabbedContent).query_one(Tabs).action_next_tab()
