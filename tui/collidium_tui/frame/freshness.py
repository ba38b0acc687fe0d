"""How old the data are that a screen shows, and why they are not newer."""

from __future__ import annotations

from datetime import datetime

from textual.widgets import Static

from collidium_tui.services import services
from collidium_tui.session import Link
from collidium_tui.widgets.text import plain
from collidium_tui.widgets.times import duration


class Freshness(Static):
    """The age of the data, the zone of times, the last error; STALE, and why, when they cannot be renewed."""

    def __init__(self) -> None:
        super().__init__()
        self._at: datetime | None = None
        self._trouble = ""

    def on_mount(self) -> None:
        self.set_interval(1, self._draw)
        self._draw()

    def refresh_text(self, at: datetime | None, trouble: str) -> None:
        """``at``: when the data came, None when there are none yet."""
        self._at, self._trouble = at, trouble
        self._draw()

    def _draw(self) -> None:
        console = services(self)
        times, status = console.times, console.session.status
        trouble = self._trouble
        if status.link is not Link.UP:
            trouble = status.mismatch or status.last_error or status.link.value
        self.set_class(bool(trouble), "stale")
        if self._at is None:
            shown = trouble or "waiting for the first answer"
        else:
            age = f"data {duration(times.now() - self._at)} old"
            shown = f"STALE: {age} · {trouble}" if trouble else f"{age} · times in {times.zone}{self._past()}"
        self.update(plain(shown, single_line=True))

    def _past(self) -> str:
        """What went wrong last, though all is well now."""
        console = services(self)
        times, status = console.times, console.session.status
        if status.last_error_at is None:
            return ""
        return f" · last error, at {times.brief(status.last_error_at)}: {status.last_error}"
