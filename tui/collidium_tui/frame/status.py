"""The line at the top: which backend, whether it answers, whether it is frozen, what is unfinished."""

from __future__ import annotations

from textual.widgets import Static

from collidium_tui.services import services
from collidium_tui.session import Link, Standing
from collidium_tui.widgets.text import plain


class StatusBar(Static):
    """Says it in words; colour and reverse only repeat them."""

    def on_mount(self) -> None:
        console = services(self)
        console.standing_changed.subscribe(self, self._draw)
        self._draw(console.session.standing)

    def _draw(self, standing: Standing) -> None:
        self.set_class(bool(standing.frozen), "frozen")
        self.set_class(standing.link is not Link.UP, "away")
        # To its end, so that reverse is the whole line's.
        self.update(plain(f" {' │ '.join(parts(standing))}".ljust(self.app.size.width), one_line=True))

    def on_resize(self) -> None:
        self._draw(services(self).session.standing)


def parts(standing: Standing) -> list[str]:
    """What the line says, most urgent first."""
    said = []
    if standing.frozen:
        said.append("*** FROZEN ***")
    said.append(standing.backend.removeprefix("http://"))
    latency = f" {standing.latency_ms:.0f} ms" if standing.latency_ms is not None else ""
    said.append(standing.link.value + (latency if standing.link is Link.UP else ""))
    if standing.frozen is False:
        said.append("open")
    if standing.unfinished is not None:
        said.append(f"{standing.unfinished:,} unfinished")
    if standing.mismatch:
        said.append(standing.mismatch)
    return said
