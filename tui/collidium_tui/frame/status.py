"""The line at the top: which backend, whether it answers, whether it is frozen, what is unfinished."""

from __future__ import annotations

from textual.widgets import Static

from collidium_tui.services import services
from collidium_tui.session import Link, ServerStatus
from collidium_tui.widgets.text import plain


class StatusBar(Static):
    """Text; colour and reverse only repeat it."""

    def on_mount(self) -> None:
        console = services(self)
        console.status_changed.subscribe(self, self._draw)
        self._draw(console.session.status)

    def _draw(self, status: ServerStatus) -> None:
        self.set_class(bool(status.frozen), "frozen")
        self.set_class(status.link is not Link.UP, "away")
        # To its end, so that reverse is the whole line's.
        self.update(plain(f" {' │ '.join(parts(status))}".ljust(self.app.size.width), single_line=True))

    def on_resize(self) -> None:
        self._draw(services(self).session.status)


def parts(status: ServerStatus) -> list[str]:
    """The parts of the line, most urgent first."""
    shown = []
    if status.frozen:
        shown.append("*** FROZEN ***")
    shown.append(status.backend.removeprefix("http://"))
    latency = f" {status.latency_ms:.0f} ms" if status.latency_ms is not None else ""
    shown.append(status.link.value + (latency if status.link is Link.UP else ""))
    if status.frozen is False:
        shown.append("open")
    if status.unfinished is not None:
        shown.append(f"{status.unfinished:,} unfinished")
    if status.mismatch:
        shown.append(status.mismatch)
    return shown
