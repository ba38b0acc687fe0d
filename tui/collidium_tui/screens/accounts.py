"""Accounts: search, one account with its lists, and operator actions on an account."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from collidium.errors import NotFound
from collidium.presentation import consequences, requests, submissions
from collidium_tui.screen import ConsoleScreen, ListData, ListsScreen, OpenedScreen
from collidium_tui.screens.challenge import open_challenge
from collidium_tui.screens.requests.detail import RequestScreen
from collidium_tui.widgets.form import LONGEST_NOTE, Field, Form, Question, needed
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import TYPED, plain

if TYPE_CHECKING:
    from collidium.client import Account, AsyncClient, Page, Transaction

#: Seconds without a key press before a search.
SEARCH_PAUSE: Final = 0.3
#: Minimum interval between two searches.
SEARCHES_APART: Final = 1.0
#: Maximum length of a name.
LONGEST_SEARCH: Final = 96


class Search(Input):
    """Posts :class:`Requested` when typing pauses, or immediately on Enter; escape clears it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Clear")]

    class Requested(Message):
        """Search for ``text``. ``done``: the operator has finished typing."""

        def __init__(self, search: Search, text: str, done: bool) -> None:
            super().__init__()
            self.search = search
            self.text = text
            self.done = done

        @property
        def control(self) -> Search:
            return self.search

    def __init__(self, hint: str) -> None:
        super().__init__(placeholder=hint, max_length=LONGEST_SEARCH, restrict=TYPED, compact=True)
        self.term = ""
        self._fetched_at = -SEARCHES_APART
        self._pause: Timer | None = None

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._stop()
        wait = max(SEARCH_PAUSE, self._fetched_at + SEARCHES_APART - monotonic())
        self._pause = self.set_timer(wait, self._post)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._post(done=True)

    def action_give_up(self) -> None:
        self.value = ""
        self._post(done=True)

    def _post(self, done: bool = False) -> None:
        self._stop()
        text = self.value.strip()
        if text != self.term or done:
            if text != self.term:
                self._fetched_at = monotonic()
            self.term = text
            self.post_message(self.Requested(self, text, done))

    def _stop(self) -> None:
        if self._pause is not None:
            self._pause.stop()
            self._pause = None


class AccountScreen(OpenedScreen[ListData["Account"]], ListsScreen["Account"]):
    """An account with its ledger, requests and submissions."""

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
        yield Table(requests.OF_ACCOUNT, lambda request: request.request_id, of="requests", id="requests")
        yield Table(
            submissions.OF_ACCOUNT, lambda sent: sent.submission_id, of="submissions", id="submissions"
        )

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
        self.show_line("#account", " · ".join(facts))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        if event.table.id == "requests":
            self.app.push_screen(RequestScreen(event.row.request_id))
        elif event.table.id == "submissions":
            self.act(partial(open_challenge, self, event.row.challenge))

    def action_grant(self) -> None:
        self.act(partial(grant, self, self.account_name))

    def action_ban(self) -> None:
        if self.data is not None:
            action = unban if self.data.head.banned else ban
            self.act(partial(action, self, self.account_name))


_LEDGER: list[Column[Transaction]] = [
    Column("when", lambda entry: entry.created_at),
    Column("credits", lambda entry: entry.delta, right=True),
    Column("balance", lambda entry: entry.balance_after, right=True),
    Column("reason", lambda entry: entry.reason),
    Column("note", lambda entry: entry.note or ""),
    Column("for", lambda entry: entry.reference or ""),
]


#: The server's maximum.
LARGEST: Final = Decimal(10) ** 9

# Only plain digits: 1e9, nan or ٣ are easily misread.
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")


def amount(typed: str) -> Decimal:
    """Parse an amount of credits to grant, or deduct if negative. Raises ValueError with the reason."""
    if not _NUMBER.fullmatch(typed):
        raise ValueError("must be a number like 25, 0.5 or -10")
    delta = Decimal(typed)
    if delta == 0:
        raise ValueError("0 changes nothing")
    if abs(delta) > LARGEST:
        raise ValueError(f"must be at most {LARGEST:,} credits")
    if delta != delta.quantize(Decimal("0.001")):
        raise ValueError("must have at most three decimal places")
    return delta


def problem_with(typed: str, balance: Decimal) -> str | None:
    """Check a grant to an account with this balance."""
    try:
        after = balance + amount(typed)
    except ValueError as error:
        return str(error)
    if after < 0:
        return f"exceeds the balance of {balance:,}"
    if after > LARGEST:
        return f"would make a balance above {LARGEST:,} credits"
    return None


async def grant(screen: ConsoleScreen[Any], name: str) -> None:
    """Grant or deduct credits, after confirmation with the balance before and after."""
    account = await screen.session.call(lambda client: client.admin_account(name))
    fields = [
        Field(
            "amount",
            "Credits",
            partial(problem_with, balance=account.credits),
            hint="25, 0.5, or -10 to deduct",
            max_length=24,
        ),
        Field("note", "Note", needed, hint="why; kept in the ledger", max_length=LONGEST_NOTE),
    ]
    form = Form(
        f"Grant to {name}, or deduct", fields, "Continue", f"The balance is {account.credits:,} credits."
    )
    filled = await screen.fill_in(form)
    if filled is None:
        return
    delta, note = amount(filled["amount"]), filled["note"]
    title = f"Deduct {-delta:,} credits from {name}" if delta < 0 else f"Grant {delta:,} credits to {name}"
    consequence = (
        f"Balance before: {account.credits:,}\nBalance after: {account.credits + delta:,}\nNote: {note}"
    )
    if await screen.confirm(Question(title, consequence, "Deduct" if delta < 0 else "Grant")):
        await screen.perform(
            lambda client, key: client.admin_grant(name, delta, note, idempotency_key=key),
            lambda granted: f"{name}: the balance is now {granted.new_balance:,} credits",
        )


async def ban(screen: ConsoleScreen[Any], name: str) -> None:
    """Ban an account, or a name that has not signed in, after asking for the reason."""
    consequence = f"{consequences.BAN}: cancel them on the screen Requests if needed."
    if not await _is_known(screen, name):
        consequence = "This name has not signed in yet: it is banned in advance. " + consequence
    field = Field("reason", "Reason", needed, hint="kept in the audit log", max_length=LONGEST_NOTE)
    filled = await screen.fill_in(Form(f"Ban {name}", [field], "Ban", consequence))
    if filled is not None:
        reason = filled["reason"]
        await screen.perform(
            lambda client, key: client.admin_ban(name, note=reason, idempotency_key=key), f"{name} is banned"
        )


async def unban(screen: ConsoleScreen[Any], name: str) -> None:
    """Unban an account after confirmation."""
    question = Question(f"Unban {name}", consequences.UNBAN, "Unban", reversible=True)
    if await screen.confirm(question):
        await screen.perform(
            lambda client, key: client.admin_ban(name, False, idempotency_key=key),
            f"{name} is no longer banned",
        )


async def _is_known(screen: ConsoleScreen[Any], name: str) -> bool:
    try:
        await screen.session.call(lambda client: client.admin_account(name))
    except NotFound:
        return False
    return True


class AccountsScreen(ConsoleScreen["Page[Account]"]):
    """All accounts, or those that a search finds."""

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
        """The text of the search."""
        return self.query_one(Search).term

    def on_search_requested(self, event: Search.Requested) -> None:
        self._restart()
        if event.done:
            self.query_one(Table).focus()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        self.app.push_screen(AccountScreen(event.row.hub_username))

    def action_search(self) -> None:
        self.query_one(Search).focus()

    def action_only_banned(self) -> None:
        self.only_banned = not self.only_banned
        self._restart()

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

    def _restart(self) -> None:
        self.query_one(Table).restart()
        self.refresh_now()

    def _since(self, account: Account) -> Text:
        return Text(self.times.show(account.created_at)[:10])

    def _empty_text(self) -> str:
        if not self.searched:
            return "No banned accounts." if self.only_banned else "No accounts yet."
        return f"No account matches {self.searched!r}. b bans that name in advance."
