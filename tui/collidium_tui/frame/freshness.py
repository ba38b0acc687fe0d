"""How old the data are that a screen shows, and why they are not newer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, cast

from textual.widgets import Static

from collidium_tui.session import Link
from collidium_tui.widgets.text import plain
from collidium_tui.widgets.times import span

if TYPE_CHECKING:
    from collidium_tui.app import Console


class Freshness(Static):
    """A line: the age of the data, the zone of times; STALE, and the error, when they cannot be renewed."""

    def __init__(self) -> None:
        super().__init__()
        self._at: datetime | None = None
        self._trouble = ""

    def on_mount(self) -> None:
        self.set_interval(1, self._draw)
        self._draw()

    def tell(self, at: datetime | None, trouble: str) -> None:
        """``at``: when the data came, None when there are none yet."""
        self._at, self._trouble = at, trouble
        self._draw()

    def _draw(self) -> None:
        stale = self._at is not None and (
            bool(self._trouble) or self._application.session.standing.link is not Link.UP
        )
        self.set_class(stale or bool(self._trouble), "stale")
        age = self._age()
        parts = [
            f"STALE: {age}" if stale else age,
            self._trouble or f"times in {self._application.times.zone}",
        ]
        self.update(plain(" · ".join(part for part in parts if part), one_line=True))

    def _age(self) -> str:
        if self._at is None:
            return "" if self._trouble else "waiting for the first answer"
        return f"data {span(self._application.times.now() - self._at)} old"

    @property
    def _application(self) -> Console:
        return cast("Console", self.app)
