"""A line to search by: it tells what is looked for while it is typed, at most once a second."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from collidium_tui.widgets.text import TYPED

#: Seconds without a key before anybody is asked.
PAUSE: Final = 0.3
#: Seconds between two searches.
APART: Final = 1.0
#: No name that is searched for is longer; more is not taken, however much is pasted.
MOST_CHARACTERS: Final = 96


class Search(Input):
    """Posts :class:`Wanted` when the typing pauses, or at once on Enter; escape empties it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Clear")]

    class Wanted(Message):
        """``text`` is looked for from now on; ``done``: its author has finished typing."""

        def __init__(self, search: Search, text: str, done: bool) -> None:
            super().__init__()
            self.search = search
            self.text = text
            self.done = done

        @property
        def control(self) -> Search:
            return self.search

    def __init__(self, hint: str, *, id: str | None = None) -> None:  # noqa: A002 -- as every widget has it
        super().__init__(placeholder=hint, max_length=MOST_CHARACTERS, restrict=TYPED, compact=True, id=id)
        self.wanted = ""
        self._asked_at = -APART
        self._pause: Timer | None = None

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._stop()
        wait = max(PAUSE, self._asked_at + APART - monotonic())
        self._pause = self.set_timer(wait, self._tell)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._tell(done=True)

    def action_give_up(self) -> None:
        self.value = ""
        self._tell(done=True)

    def _tell(self, done: bool = False) -> None:
        self._stop()
        text = self.value.strip()
        if text != self.wanted or done:
            if text != self.wanted:
                self._asked_at = monotonic()
            self.wanted = text
            self.post_message(self.Wanted(self, text, done))

    def _stop(self) -> None:
        if self._pause is not None:
            self._pause.stop()
            self._pause = None
