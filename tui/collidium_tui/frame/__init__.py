"""The lines around every screen: the status of the backend, the tabs, and the age of the data.

Errors in the console itself are logged into a file, because the terminal shows the screen.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from textual import events
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from collidium_tui.session import Link, ServerStatus, console_of
from collidium_tui.widgets.text import duration, plain

logger = logging.getLogger("collidium_tui")


class StatusBar(Static):
    """Text; colour and reverse only repeat it."""

    def on_mount(self) -> None:
        console = console_of(self)
        console.status_changed.subscribe(self, self._draw)
        self._draw(console.session.status)

    def _draw(self, status: ServerStatus) -> None:
        self.set_class(bool(status.frozen), "frozen")
        self.set_class(status.link is not Link.UP, "away")
        # To its end, so that reverse is the whole line's.
        self.update(plain(f" {' │ '.join(parts(status))}".ljust(self.app.size.width), single_line=True))

    def on_resize(self) -> None:
        self._draw(console_of(self).session.status)


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


class Tabs(Static):
    """All labels where the terminal is wide enough for them; the one that is shown in brackets."""

    def on_mount(self) -> None:
        console_of(self).screens_changed.subscribe(self, lambda _: self._draw())
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def on_screen_resume(self) -> None:
        self._draw()

    def _draw(self) -> None:
        console = console_of(self)
        shown = getattr(self.screen, "label", "")
        keys = console.screen_keys
        # With screens of plugins there may be no room for whole labels but that of the one that is shown.
        for spare, letters in ((" ", None), ("", None), ("", 5)):
            tabs = [_tab(key, label, spare, letters, label == shown) for key, label in keys.items()]
            line = Content(" ").join(tabs)
            if line.cell_length <= self.size.width:
                break
        self.update(line)


def _tab(key: str, label: str, spare: str, letters: int | None, shown: bool) -> Content:
    style = Style(reverse=True, bold=True) if shown else Style()
    click = Style.from_meta({"@click": f"app.show({label!r})"})
    return Content.assemble(
        (key, Style(bold=True)), spare, (label if shown else label[:letters], style)
    ).stylize(click)


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
        console = console_of(self)
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
        console = console_of(self)
        times, status = console.times, console.session.status
        if status.last_error_at is None:
            return ""
        return f" · last error, at {times.brief(status.last_error_at)}: {status.last_error}"


def log_file() -> Path:
    """The console's log."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "collidium" / "console.log"


def log_to_file() -> None:
    """Send what this process logs to :func:`log_file`, which is made with its first line."""
    file = log_file()
    logging.raiseExceptions = False  # a disk that is full must not write across the screen
    handler: logging.Handler
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(file, maxBytes=1_000_000, backupCount=1, delay=True, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)


def record(error: BaseException) -> str:
    """Log an error with its traceback and return the text to show."""
    logger.error("error in the console", exc_info=error)
    return f"error in the console ({type(error).__name__}); see {log_file()}"
