"""One account: its balance, its ledger, its requests and its submissions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from collidium_tui.screens.accounts import actions
from collidium_tui.screens.benchmarks.leaderboard import model, open_leaderboard
from collidium_tui.screens.lists import ListData, ListsScreen
from collidium_tui.screens.overview import OpenedScreen
from collidium_tui.screens.requests.detail import RequestScreen
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import Account, AsyncClient, Page, SimulationRequest, Submission, Transaction


class AccountScreen(OpenedScreen[ListData["Account"]], ListsScreen["Account"]):
    """An account by its name."""

    label = "Accounts"
    about = "One account: balance, ledger, requests and submissions; grant, deduct, ban, unban."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "grant", "Grant"),
        Binding("b", "ban", "Ban"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__()
        self.account_name = name

    def content(self) -> ComposeResult:
        yield Static(plain(self.account_name, single_line=True), id="account")
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        yield Table(_LEDGER, lambda entry: str(entry.id), of="ledger entries", id="ledger")
        yield Table(_REQUESTS, lambda request: request.request_id, of="requests", id="requests")
        yield Table(_SUBMISSIONS, lambda sent: sent.submission_id, of="submissions", id="submissions")

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[Account, Page[Any]]:
        name = self.account_name
        account = await client.admin_account(name)
        if table.id == "ledger":
            return account, await client.admin_transactions(name, limit=PAGE, cursor=table.cursor)
        if table.id == "requests":
            return account, await client.admin_requests(user=name, limit=PAGE, cursor=table.cursor)
        return account, await client.admin_submissions(user=name, limit=PAGE, cursor=table.cursor)

    def show_head(self, head: Account) -> None:
        facts = [
            head.hub_username,
            "*** BANNED ***" if head.banned else "not banned",
            f"balance {head.credits:,}",
            f"since {self.times.show(head.created_at)}",
            f"last seen {self.times.show(head.last_seen_at) or 'never'}",
        ]
        self.query_one("#account", Static).update(plain(" · ".join(facts), single_line=True))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        if event.table.id == "requests":
            self.app.push_screen(RequestScreen(event.row.request_id))
        elif event.table.id == "submissions":
            self.act(partial(open_leaderboard, self, event.row.task))

    def action_grant(self) -> None:
        self.act(partial(actions.grant, self, self.account_name))

    def action_ban(self) -> None:
        if self.data is not None:
            action = actions.unban if self.data.head.banned else actions.ban
            self.act(partial(action, self, self.account_name))


_LEDGER: list[Column[Transaction]] = [
    Column("when", lambda entry: entry.created_at),
    Column("credits", lambda entry: entry.delta, right=True),
    Column("balance", lambda entry: entry.balance_after, right=True),
    Column("reason", lambda entry: entry.reason),
    Column("note", lambda entry: entry.note or ""),
    Column("for", lambda entry: entry.reference or ""),
]
_REQUESTS: list[Column[SimulationRequest]] = [
    Column("state", lambda request: request.state),
    Column("when", lambda request: request.created_at),
    Column("channel", lambda request: request.channel),
    Column("events", lambda request: request.events, right=True),
    Column("pileup", lambda request: request.pileup, right=True),
    Column("charged", lambda request: request.credits_charged, right=True),
    Column("refunded", lambda request: request.credits_refunded, right=True),
    Column("reason", lambda request: request.reason or ""),
    Column("request", lambda request: request.request_id),
]
_SUBMISSIONS: list[Column[Submission]] = [
    Column("task", lambda sent: sent.task),
    Column("when", lambda sent: sent.submitted_at),
    Column("earned", lambda sent: sent.credits_earned, right=True),
    Column("verified", lambda sent: sent.verified_at),
    Column("model", model),
    Column("submission", lambda sent: sent.submission_id),
]
