"""Usage: the accounts that used most of this month."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.widgets import Static

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.charts import bar_cell, last_column_width
from collidium_tui.widgets.table import Column, Table
from collidium_tui.widgets.text import counted, plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Usage, UserUsage

#: Accounts that are shown.
MAX_ACCOUNTS: Final = 50


class UsageScreen(ConsoleScreen["Usage"]):
    """The accounts that used most node-hours this month: a table whose last column is a bar chart."""

    CSS = """
    UsageScreen #totals { height: auto; padding: 0 1; }
    """
    label = "Usage"
    about = (
        "The accounts that used most node-hours this month (UTC): used, or estimated where a job has not "
        "ended. The bars are in proportion; that of the largest account is the longest."
    )

    def __init__(self) -> None:
        super().__init__()
        self._largest = Decimal(0)

    def content(self) -> ComposeResult:
        columns: list[Column[UserUsage]] = [
            Column("account", lambda user: user.hub_username, width=22),
            Column("requests", lambda user: user.requests, right=True, width=10),
            Column("share %", self._share, right=True, width=9),
            Column("node-hours", lambda user: user.node_hours, self._bar),
        ]
        yield Static(id="totals")
        yield Table(columns, lambda user: user.hub_username, of="accounts")

    async def fetch(self, client: AsyncClient) -> Usage:
        return await client.admin_usage(limit=MAX_ACCOUNTS)

    def show(self, data: Usage) -> None:
        self.query_one("#totals", Static).update(plain(_summary(data), single_line=True))
        self._largest = max((user.node_hours for user in data.users), default=Decimal(0))
        self.query_one(Table).show_rows(data.users)

    def on_resize(self, event: events.Resize) -> None:
        if self.data is not None:
            self.call_after_refresh(self.show, self.data)

    def _share(self, user: UserUsage) -> Decimal:
        """Of the month's node-hours, in percent."""
        total = self.data.total_node_hours if self.data is not None else Decimal(0)
        return round(100 * user.node_hours / total, 1) if total else Decimal(0)

    def _bar(self, user: UserUsage) -> Text:
        return bar_cell(user.node_hours, self._largest, last_column_width(self.query_one(Table)))


def _summary(data: Usage) -> str:
    if not data.total_requests:
        return f"{data.month} (UTC): no requests yet."
    listed = sum((user.node_hours for user in data.users), Decimal(0))
    return (
        f"{data.month} (UTC): {counted(data.total_requests, 'requests')}, {data.total_node_hours:,.1f} "
        f"node-hours; of {counted(len(data.users), 'accounts')} below: {listed:,.1f}"
    )
