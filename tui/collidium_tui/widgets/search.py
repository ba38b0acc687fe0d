"""A search field: posts its text while it is typed, at most once a second."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from collidium_tui.widgets.text import TYPED

#: Seconds without a key before a search.
PAUSE: Final = 0.3
#: Seconds between two searches.
APART: Final = 1.0
#: The longest name; further characters are ignored, also when pasted.
MAX_LENGTH: Final = 96


class Search(Input):
    """Posts :class:`Requested` when the typing pauses, or at once on Enter; escape empties it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Clear")]

    class Requested(Message):
        """Search for ``text``; ``done``: typing has finished."""

        def __init__(self, search: Search, text: str, done: bool) -> None:
            super().__init__()
            self.search = search
            self.text = text
            self.done = done

        @property
        def control(self) -> Search:
            return self.search

    def __init__(self, hint: str) -> None:
        super().__init__(placeholder=hint, max_length=MAX_LENGTH, restrict=TYPED, compact=True)
        self.term = ""
        self._fetched_at = -APART
        self._pause: Timer | None = None

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._stop()
        wait = max(PAUSE, self._fetched_at + APART - monotonic())
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
