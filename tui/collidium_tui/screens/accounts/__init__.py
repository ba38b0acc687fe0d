"""Accounts: all of them, to be searched while typing; one of them, grants and bans."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.accounts.detail import AccountScreen, ban, grant, unban
from collidium_tui.widgets.search import Search
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import Account, AsyncClient, Page


class AccountsScreen(ConsoleScreen["Page[Account]"]):
    """The accounts that a search finds, a page at a time; Enter opens one."""

    label = "Accounts"
    about = "Search accounts, open one, grant or deduct credits, ban and unban."
    AUTO_FOCUS = "Table"
    CSS = """
    #search-line { height: 1; }
    #search-line Search { width: 1fr; }
    #search-line #picked { width: auto; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("g", "grant", "Grant"),
        Binding("b", "ban", "Ban"),
        Binding("f", "only_banned", "Banned"),
    ]

    def __init__(self) -> None:
        super().__init__()
        #: Whether only banned accounts are shown.
        self.only_banned = False

    def content(self) -> ComposeResult:
        with Horizontal(id="search-line"):
            yield Search("/ searches: part of a name")
            yield Static(id="picked")
        columns: list[Column[Account]] = [
            Column("account", lambda account: account.hub_username, width=28),
            Column("credits", lambda account: account.credits, right=True),
            Column("banned", lambda account: "BANNED" if account.banned else ""),
            Column("last seen", lambda account: account.last_seen_at),
            Column("since", lambda account: account.created_at, self._since),
        ]
        yield Table(columns, lambda account: account.hub_username, of="accounts")
        yield Static(id="empty")

    async def fetch(self, client: AsyncClient) -> Page[Account]:
        return await client.admin_accounts(
            search=self.searched,
            banned=True if self.only_banned else None,
            limit=PAGE,
            cursor=self.query_one(Table).cursor,
        )

    def show(self, data: Page[Account]) -> None:
        self.query_one(Table).show_page(data)
        self.query_one("#picked", Static).update("ONLY BANNED" if self.only_banned else "all")
        empty = self.query_one("#empty", Static)
        empty.display = not data.items
        empty.update(plain(self._empty_text(), single_line=True))

    @property
    def searched(self) -> str:
        """What is looked for."""
        return self.query_one(Search).term

    def on_search_requested(self, event: Search.Requested) -> None:
        self._ask_anew()
        if event.done:
            self.query_one(Table).focus()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        self.app.push_screen(AccountScreen(event.row.hub_username))

    def action_search(self) -> None:
        self.query_one(Search).focus()

    def action_only_banned(self) -> None:
        self.only_banned = not self.only_banned
        self._ask_anew()

    def action_grant(self) -> None:
        if (account := self.current) is not None:
            self.act(partial(grant, self, account.hub_username))

    def action_ban(self) -> None:
        account = self.current
        if account is None and self.searched:
            self.act(partial(ban, self, self.searched))
        elif account is not None:
            action = unban if account.banned else ban
            self.act(partial(action, self, account.hub_username))

    @property
    def current(self) -> Account | None:
        """The account under the cursor."""
        table: Table[Account] = self.query_one(Table)
        return table.current

    def _ask_anew(self) -> None:
        self.query_one(Table).restart()
        self.refresh_now()

    def _since(self, account: Account) -> Text:
        return Text(self.times.show(account.created_at)[:10])

    def _empty_text(self) -> str:
        if not self.searched:
            return "No banned accounts." if self.only_banned else "No accounts yet."
        return f"No account matches {self.searched!r}. b bans that name in advance."
