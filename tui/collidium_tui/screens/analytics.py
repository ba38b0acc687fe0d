"""Usage by account; analytics by channel and day, with the failure rate; the audit log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher, DataTable, Static
from textual_plotext import PlotextPlot

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import counted, printable

if TYPE_CHECKING:
    from collidium.client import (
        AsyncClient,
        AuditEntry,
        ChannelUsage,
        DayUsage,
        Failures,
        Page,
        Usage,
        UserUsage,
    )

#: Width of the number before a bar.
_NUMBER: Final = 10
#: Partial cells of a bar, by eighths.
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
#: Width of a chart's scale and frame.
_SCALE: Final = 9
_FRAME: Final = 2
#: From here on, the scale uses exponents.
_MANY: Final = 100_000.0
#: Maximum value of a bar: Plotext cannot draw values near the largest float.
_MAX_VALUE: Final = Decimal(10) ** 15
#: Interval of the labelled bars.
_DATED: Final = 5

#: Number of days shown, including today.
DAYS: Final = 30


def bar_cell(value: Decimal, maximum: Decimal, width: int) -> Text:
    """Format a number with a bar in ``width`` cells; the bar of ``maximum`` fills the cell.

    Only zero has no bar.
    """
    number = f"{value:{',.3f' if 0 < value < 1 else ',.1f'}}".rjust(_NUMBER) + " "
    room = max(0, width - len(number))
    eighths = 0
    if value > 0 and maximum > 0:
        eighths = max(1, round(room * 8 * min(value, maximum) / maximum)) if room else 0
    whole, rest = divmod(eighths, 8)
    return Text.assemble(number, ("█" * whole + _EIGHTHS[rest], "cyan"), no_wrap=True)


def last_column_width(table: DataTable[Text]) -> int:
    """Return the visible width that is left for the last column, next to the scrollbar."""
    before = sum(column.get_render_width(table) for column in list(table.columns.values())[:-1])
    return table.size.width - before - 2 * table.cell_padding - table.styles.scrollbar_size_vertical


class DailyChart(PlotextPlot):
    """A bar chart of values per day."""

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 -- as every widget has it
        super().__init__(id=id)
        self._title = title
        self._days: tuple[str, ...] = ()
        self._values: tuple[float, ...] = ()

    def show(self, days: Sequence[str], values: Sequence[Decimal]) -> None:
        """Draw the values of days ``YYYY-MM-DD``, or of the latest days that fit."""
        self._days = tuple(printable(day, single_line=True) for day in days)
        self._values = tuple(float(min(max(value, Decimal(0)), _MAX_VALUE)) for value in values)
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        """Draw the bars at positions in half cells, so that all have the same width."""
        self.plt.clear_data()
        room = max(0, self.size.width - _SCALE - _FRAME)
        names, values = self._days[-room:], self._values[-room:]
        days = len(names)
        if days and room:
            apart = 2 * max(1, room // days)
            thick = max(1, apart - 2)
            centres = [apart * day + (thick - 1) / 2 for day in range(days)]
            self.plt.bar(centres, list(values), width=(thick - 1) / apart, marker="hd")
            self.plt.xlim(0, 2 * room - 1)
            dated = range(0, days, _DATED)
            self.plt.xticks([centres[day] for day in dated], [names[day][5:10] for day in dated])
            self._scale(max(values) or 1.0)
            self.plt.title(self._title if any(values) else f"{self._title}: none")
        self.refresh()

    def _scale(self, top: float) -> None:
        marks = [0.0, top / 2, top]
        form = ",.1f" if top < _MANY else ".2e"
        self.plt.ylim(0, top)
        self.plt.yticks(marks, [f"{mark:{form}}".rjust(_SCALE) for mark in marks])


@dataclass(frozen=True, slots=True)
class Analysis:
    """Channels and failures of a month, and the last days, independent of the month."""

    failures: Failures
    channels: tuple[ChannelUsage, ...]
    days: tuple[DayUsage, ...]


class AnalyticsScreen(ConsoleScreen[Analysis]):
    """Channels and failures of a month, and the last days."""

    CSS = """
    AnalyticsScreen #month, AnalyticsScreen #lately { height: auto; padding: 0 1; }
    AnalyticsScreen #daily { height: 1fr; }
    AnalyticsScreen #channels { height: auto; max-height: 45%; }
    """
    label = "Analytics"
    about = (
        "Requests and node-hours per channel, and the failure rate, of a month; node-hours of each of the "
        "last 30 days, as bars or as a table. Days and months are in UTC. [ and ] choose the month."
    )
    #: A fetch makes three calls.
    refresh_seconds = 10.0
    AUTO_FOCUS = "#channels"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "month(-1)", "Earlier month", key_display="["),
        Binding("right_square_bracket", "month(1)", "Later", key_display="]"),
        Binding("d", "days", "Table or bars"),
    ]

    def __init__(self) -> None:
        super().__init__()
        #: ``YYYY-MM``; None is the current one.
        self.month: str | None = None
        self._largest = {"channels": Decimal(0), "days": Decimal(0)}

    def content(self) -> ComposeResult:
        channels: list[Column[ChannelUsage]] = [
            Column("channel", lambda channel: channel.channel, width=22),
            Column("requests", lambda channel: channel.requests, right=True, width=10),
            Column("node-hours", lambda channel: channel.node_hours, self._bar_channel),
        ]
        days: list[Column[DayUsage]] = [
            Column("day", lambda day: day.date, width=22),
            Column("requests", lambda day: day.requests, right=True, width=10),
            Column("node-hours", lambda day: day.node_hours, self._bar_day),
        ]
        yield Static(id="month")
        yield Table(channels, lambda channel: channel.channel, of="channels", id="channels")
        yield Static(id="lately")
        with ContentSwitcher(initial="chart", id="daily"):
            yield DailyChart(f"node-hours on each of the last {DAYS} days (UTC)", id="chart")
            yield Table(days, lambda day: day.date, of="days", id="days")

    async def fetch(self, client: AsyncClient) -> Analysis:
        failures = await client.admin_failures(month=self.month)
        channels = await client.admin_channels(month=self.month)
        days = await client.admin_daily(days=DAYS)
        return Analysis(failures, channels.items, days.items)

    def show(self, data: Analysis) -> None:
        self.show_line("#month", _month_summary(data))
        self._largest["channels"] = max((each.node_hours for each in data.channels), default=Decimal(0))
        self.query_one("#channels", Table).show_rows(data.channels)
        self.show_line("#lately", _days_summary(data))
        self._largest["days"] = max((each.node_hours for each in data.days), default=Decimal(0))
        self.query_one("#days", Table).show_rows(data.days)
        chart = self.query_one(DailyChart)
        chart.show([day.date for day in data.days], [day.node_hours for day in data.days])

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def action_month(self, direction: int) -> None:
        """Show the previous or next month, up to the current one."""
        if self.data is None:
            return
        first = date.fromisoformat(f"{self.month or self.data.failures.month}-01")
        other = f"{first + timedelta(days=32 if direction > 0 else -1):%Y-%m}"
        current = self.data.days[-1].date[:7]
        if other <= current:
            # None, so that the screen follows when the next month begins.
            self.month = None if other == current else other
            self.refresh_now()

    def action_days(self) -> None:
        """Switch between a table and bars."""
        daily = self.query_one("#daily", ContentSwitcher)
        daily.current = "days" if daily.current == "chart" else "chart"
        self.query_one("#days" if daily.current == "days" else "#channels").focus()
        self._fit()

    def _fit(self) -> None:
        """Redraw the bars after a change of layout."""
        if self.data is not None:
            self.call_after_refresh(self.show, self.data)

    def _bar_channel(self, channel: ChannelUsage) -> Text:
        room = last_column_width(self.query_one("#channels", Table))
        return bar_cell(channel.node_hours, self._largest["channels"], room)

    def _bar_day(self, day: DayUsage) -> Text:
        return bar_cell(
            day.node_hours, self._largest["days"], last_column_width(self.query_one("#days", Table))
        )


def _month_summary(data: Analysis) -> str:
    failures = data.failures
    if not data.channels and not failures.finished:
        return f"{failures.month}: no requests were ordered or ended."
    used = sum((channel.node_hours for channel in data.channels), Decimal(0))
    ordered = sum(channel.requests for channel in data.channels)
    return (
        f"{failures.month}: {failures.failed:,} of {failures.finished:,} that ended failed "
        f"({failures.failure_rate:.1f} %); {ordered:,} ordered, {used:,.1f} node-hours"
    )


def _days_summary(data: Analysis) -> str:
    used = sum((day.node_hours for day in data.days), Decimal(0))
    ordered = sum(day.requests for day in data.days)
    if not ordered:
        return f"last {len(data.days)} days: nothing was ordered."
    return f"last {len(data.days)} days: {counted(ordered, 'requests')}, {used:,.1f} node-hours"


#: Number of accounts shown.
MAX_ACCOUNTS: Final = 50


class UsageScreen(ConsoleScreen["Usage"]):
    """The accounts that used the most node-hours this month."""

    CSS = """
    UsageScreen #totals { height: auto; padding: 0 1; }
    """
    label = "Usage"
    about = (
        "The accounts that used the most node-hours this month (UTC). Jobs that have not ended count with "
        "their estimate."
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
        self.show_line("#totals", _summary(data))
        self._largest = max((user.node_hours for user in data.users), default=Decimal(0))
        self.query_one(Table).show_rows(data.users)

    def on_resize(self, event: events.Resize) -> None:
        if self.data is not None:
            self.call_after_refresh(self.show, self.data)

    def _share(self, user: UserUsage) -> Decimal:
        """Return the percentage of the month's node-hours."""
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


class AuditScreen(ConsoleScreen["Page[AuditEntry]"]):
    """The actions of operators, newest first."""

    label = "Audit"
    about = "The actions of operators, newest first."

    def content(self) -> ComposeResult:
        columns: list[Column[AuditEntry]] = [
            Column("when", lambda entry: entry.at),
            Column("who", lambda entry: entry.actor),
            Column("what", lambda entry: entry.action),
            Column("to", lambda entry: entry.target),
            Column("details", lambda entry: json.dumps(dict(entry.details), default=str)),
        ]
        yield Table(columns, lambda entry: str(entry.id), of="audit entries")

    async def fetch(self, client: AsyncClient) -> Page[AuditEntry]:
        return await client.admin_audit(limit=PAGE, cursor=self.query_one(Table).cursor)

    def show(self, data: Page[AuditEntry]) -> None:
        self.query_one(Table).show_page(data)
