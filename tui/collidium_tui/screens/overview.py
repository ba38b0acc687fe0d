"""Overview: findings that need an operator, and a summary of the platform."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.text import Times, counted, duration, formatted, plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Overview


class OverviewScreen(ConsoleScreen["Overview"]):
    """Findings first, then the summary."""

    label = "Overview"
    about = "The state of the platform: what needs your attention, and a summary."

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


#: Requests are followed every few seconds; a longer pause is a finding.
FOLLOWER_SILENT: Final = timedelta(minutes=1)
#: A request that is queued for longer is a finding.
QUEUE_OLD: Final = timedelta(hours=6)
#: A model that waits for longer is a finding.
MODEL_OLD: Final = timedelta(hours=1)
#: Findings: percentages of the month's node-hours used, and of the ended requests that failed.
MONTH_NEARLY_USED: Final = 90
MANY_FAIL: Final = 10
#: Minimum number of ended requests for a meaningful rate.
ENOUGH_ENDED: Final = 10
#: Width of the bar of the month.
BAR: Final = 24


def findings(overview: Overview, times: Times) -> list[str]:
    """Return what needs an operator, most urgent first."""
    return [
        *_frozen(overview, times),
        *_followers(overview),
        *_month(overview),
        *_failures(overview),
        *_queue(overview),
        *_models(overview),
        *_files(overview),
        *(f"plugin failed to load: {failure}" for failure in overview.plugins_failed),
        *_tasks(overview),
    ]


def summary(overview: Overview, times: Times) -> list[tuple[str, str]]:
    """Return the names and values of the summary."""
    used = f"{formatted(overview.node_hours_month, times)} of {formatted(overview.monthly_node_hours, times)}"
    rate = f"{overview.failure_rate:.1f} % ({overview.failed:,} of {overview.finished:,} that ended)"
    return [
        ("queued", f"{overview.queued:,}{_oldest(overview, overview.oldest_queued_at)}"),
        ("running", f"{overview.running:,}"),
        (
            "node-hours today",
            f"{formatted(overview.node_hours_today, times)}  "
            f"({counted(overview.requests_today, 'requests')})",
        ),
        (f"node-hours in {overview.month}", f"{used}  ({counted(overview.requests_month, 'requests')})"),
        ("", bar(percent_used(overview))),
        ("failed this month", rate),
        ("followed by", _followed(overview)),
        ("models waiting", f"{overview.models_waiting:,}{_oldest(overview, overview.oldest_model_at)}"),
        ("files waiting", f"{overview.files_waiting:,}"),
        ("webhooks waiting", f"{overview.webhooks_pending:,}"),
        ("runner", f"{overview.runner} ({overview.run_mode})"),
        ("server", f"collidium {overview.version}, its clock {times.show(overview.at)}"),
    ]


def percent_used(overview: Overview) -> float:
    """Return the percentage of the month's node-hours that is used; 100 if there are none."""
    cap = overview.monthly_node_hours
    return float(100 * overview.node_hours_month / cap) if cap > 0 else 100.0


def bar(percent: float) -> str:
    """Format a percentage as a bar."""
    full = min(BAR, round(percent / 100 * BAR))
    return f"[{'#' * full}{'.' * (BAR - full)}] {percent:.0f} %"


def _frozen(overview: Overview, times: Times) -> list[str]:
    if not overview.submissions_frozen:
        return []
    since = f" since {times.show(overview.frozen_at)}" if overview.frozen_at else ""
    by = f" by {overview.frozen_by}" if overview.frozen_by else ""
    note = f": {overview.frozen_note}" if overview.frozen_note else ""
    return [f"FROZEN{since}{by}{note}. New requests are rejected."]


def _followers(overview: Overview) -> list[str]:
    last = overview.followers[0].looked_at if overview.followers else None
    if last is None:
        return ["requests are not followed: no server or `collidium worker` has polled recently"]
    silent = overview.at - last
    return [f"requests have not been followed for {duration(silent)}"] if silent > FOLLOWER_SILENT else []


def _month(overview: Overview) -> list[str]:
    percent = percent_used(overview)
    if percent < MONTH_NEARLY_USED:
        return []
    return [f"{percent:.0f} % of the month's node-hours used; at 100 % orders are rejected"]


def _failures(overview: Overview) -> list[str]:
    if overview.finished < ENOUGH_ENDED or overview.failure_rate < MANY_FAIL:
        return []
    return [f"{overview.failure_rate:.1f} % of the requests that ended this month failed"]


def _queue(overview: Overview) -> list[str]:
    oldest = overview.oldest_queued_at
    if oldest is None or overview.at - oldest < QUEUE_OLD:
        return []
    return [f"a request has been queued for {duration(overview.at - oldest)}"]


def _models(overview: Overview) -> list[str]:
    oldest = overview.oldest_model_at
    if oldest is None:
        return []
    waited = f"a model has waited for {duration(overview.at - oldest)}"
    if overview.models_not_run is not None:
        return [f"{waited}, and nothing runs models: {overview.models_not_run}"]
    return [waited] if overview.at - oldest >= MODEL_OLD else []


def _files(overview: Overview) -> list[str]:
    if not overview.files_not_retried:
        return []
    return [
        f"no longer tried: {counted(overview.files_not_retried, 'files')} that cannot be scored again "
        "(collidium challenge waiting NAME)"
    ]


def _tasks(overview: Overview) -> list[str]:
    silent: dict[str, list[str]] = {}
    for task in overview.tasks_silent:
        # Without the command in parentheses, which names the task.
        silent.setdefault(task.reason.partition(" (")[0], []).append(task.name)
    return [f"no submissions to {', '.join(names)}: {reason}" for reason, names in silent.items()]


def _oldest(overview: Overview, oldest: datetime | None) -> str:
    return "" if oldest is None else f"  (the oldest for {duration(overview.at - oldest)})"


def _followed(overview: Overview) -> str:
    passes = (
        f"{each.process} {duration(overview.at - each.looked_at)} ago" for each in overview.followers[:3]
    )
    return ", ".join(passes) or "none"
