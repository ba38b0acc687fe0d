"""Refunds of the requests that failed in a time window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from collidium_tui.screen import ConsoleScreen, OpenedScreen
from collidium_tui.screens.incident.procedure import Incident
from collidium_tui.widgets.form import LONGEST_NOTE, Field, Form, needed
from collidium_tui.widgets.table import Column, Table
from collidium_tui.widgets.text import Times, counted

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Refund, Refunds


#: The proposed window begins so long before the freeze, to include the failures that led to it.
BEFORE: Final = timedelta(hours=1)
#: Maximum length of a window.
LONGEST: Final = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class Window:
    """A time window, without its ``end``."""

    begin: datetime
    end: datetime

    @classmethod
    def proposed(cls, incident: Incident, now: datetime) -> Window:
        """Return the window from before the freeze, if there was one, until now."""
        began = incident.began.at if incident.began else now
        return cls(max(began - BEFORE, now - LONGEST), now)


class WindowForm(Form):
    """A form for a time window."""

    def __init__(self, window: Window, times: Times) -> None:
        def problem(typed: str) -> str | None:
            try:
                times.read(typed)
            except ValueError as error:
                return str(error)
            return None

        fields = [
            Field("begin", f"Failed from ({times.zone})", problem, times.show(window.begin)),
            Field("end", f"until ({times.zone})", problem, times.show(window.end)),
        ]
        about = "Lists the simulation requests that failed in this time and were not refunded in full."
        super().__init__("Refund what failed", fields, "Preview", about)
        self._times = times

    def problems(self, values: Mapping[str, str]) -> list[str]:
        found = super().problems(values)
        if found:
            return found
        window = self.window(values)
        if window.end <= window.begin:
            return ["The window ends before it begins."]
        if window.end - window.begin > LONGEST:
            return [f"The window is longer than {LONGEST.days} days: refund in two steps."]
        return []

    def window(self, values: Mapping[str, str]) -> Window:
        """Return the window of the values."""
        return Window(self._times.read(values["begin"]), self._times.read(values["end"]))


async def open_refunds(screen: ConsoleScreen[Any], window: Window) -> None:
    """Ask for a window, with a proposal, and open its refunds."""
    chosen = await _ask_window(screen, window)
    if chosen is not None:
        screen.app.push_screen(RefundsScreen(chosen))


async def _ask_window(screen: ConsoleScreen[Any], window: Window) -> Window | None:
    """Ask for a window, with a proposal; None if it was cancelled."""
    form = WindowForm(window, screen.times)
    filled = await screen.fill_in(form)
    return None if filled is None else form.window(filled)


class RefundsScreen(OpenedScreen["Refunds"]):
    """The refunds of a window. Only the refunds that are shown are made."""

    label = "Incident"
    about = "Simulation requests that failed in a period and were not refunded in full; a refunds them."
    refresh_seconds = 15.0
    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", "Refund all"),
        Binding("w", "window", "Other time"),
    ]

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window = window

    def content(self) -> ComposeResult:
        yield Static(id="refunds")
        yield Table(_COLUMNS, lambda refund: refund.request_id, of="refunds")

    async def fetch(self, client: AsyncClient) -> Refunds:
        return await client.admin_refunds(self.window.begin, self.window.end)

    def show(self, data: Refunds) -> None:
        self.show_line("#refunds", f"{self._when()}: {amount_of(data)}")
        self.query_one(Table).show_rows(data.requests)

    def action_window(self) -> None:
        self.act(self._other_window)

    def action_apply(self) -> None:
        if self.data is not None and self.data.requests:
            self.act(partial(self._apply, self.data))
        else:
            self.notify("There is nothing to refund.")

    async def _apply(self, seen: Refunds) -> None:
        accounts = counted(len({refund.hub_username for refund in seen.requests}), "accounts")
        about = (
            f"{amount_of(seen).capitalize()} of {accounts} are refunded immediately. If the list has changed "
            "since you saw it, nothing is refunded and the new list is shown. Only deducting undoes a refund."
        )
        hint = "why; kept in the ledgers and the audit log"
        note = Field("note", "Note", needed, hint=hint, max_length=LONGEST_NOTE)
        filled = await self.fill_in(Form(f"Refund what failed {self._when()}", [note], "Refund all", about))
        if filled is None:
            return
        await self.perform(
            lambda client, key: client.admin_refunds(
                self.window.begin,
                self.window.end,
                apply=True,
                digest=seen.digest,
                note=filled["note"],
                idempotency_key=key,
            ),
            lambda paid: f"Refunded: {amount_of(paid)}.",
        )
        self.refresh_now()

    async def _other_window(self) -> None:
        chosen = await _ask_window(self, self.window)
        if chosen is not None:
            self.window = chosen
            self.refresh_now()

    def _when(self) -> str:
        return f"from {self.times.show(self.window.begin)} to {self.times.show(self.window.end)}"


def amount_of(refunds: Refunds) -> str:
    """Describe the credits and the number of requests."""
    return f"{refunds.total:,} credits of {counted(len(refunds.requests), 'requests')}"


_COLUMNS: list[Column[Refund]] = [
    Column("failed", lambda refund: refund.failed_at),
    Column("account", lambda refund: refund.hub_username),
    Column("charged", lambda refund: refund.credits_charged, right=True),
    Column("refunded", lambda refund: refund.credits_refunded, right=True),
    Column("to refund", lambda refund: refund.refund, right=True),
    Column("channel", lambda refund: refund.channel),
    Column("reason", lambda refund: refund.reason or ""),
    Column("request", lambda refund: refund.request_id),
]
