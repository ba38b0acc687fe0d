"""The line above the list of requests: which of them are listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label, Select

from collidium_tui.screens.requests.record import STATES
from collidium_tui.widgets.text import TYPED

#: What the server takes at most.
_MAX_ACCOUNT_LENGTH: Final = 96
_MAX_CHANNEL_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which requests are listed; None: any."""

    state: str | None = None
    user: str | None = None
    channel: str | None = None

    def __str__(self) -> str:
        parts = [self.state, self.user and f"by {self.user}", self.channel and f"of {self.channel}"]
        return ", ".join(part for part in parts if part) or "all"


class Filters(Horizontal):
    """Posts :class:`Changed` when a state is chosen, and on Enter in the fields; escape leaves them."""

    DEFAULT_CSS = """
    Filters { height: 1; }
    Filters Select { width: 18; }
    Filters Input { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back to the list")]

    class Changed(Message):
        """Other requests are wanted."""

    class Left(Message):
        """The fields are left: the list is to have the keys."""

    def __init__(self) -> None:
        super().__init__()
        self.current = RequestFilter()

    def compose(self) -> ComposeResult:
        yield Label("state ")
        states = [(state, state) for state in STATES]
        yield Select(states, prompt="any", compact=True, id="state")
        yield Label(" account ")
        yield Input(
            placeholder="any", max_length=_MAX_ACCOUNT_LENGTH, restrict=TYPED, compact=True, id="user"
        )
        yield Label(" channel ")
        yield Input(
            placeholder="any", max_length=_MAX_CHANNEL_LENGTH, restrict=TYPED, compact=True, id="channel"
        )

    def pick(self, wanted: RequestFilter) -> None:
        """Put these in."""
        with self.prevent(Select.Changed):
            self._select.value = wanted.state if wanted.state is not None else Select.NULL
        self._field("user").value = wanted.user or ""
        self._field("channel").value = wanted.channel or ""
        self._take()

    def begin(self) -> None:
        """Have the account typed in."""
        self._field("user").focus()

    def on_select_changed(self, event: Select.Changed) -> None:
        event.stop()
        self._take()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._take()
        self.post_message(self.Left())

    def action_leave(self) -> None:
        self._field("user").value = self.current.user or ""
        self._field("channel").value = self.current.channel or ""
        self.post_message(self.Left())

    def _take(self) -> None:
        state = self._select.value
        wanted = RequestFilter(
            state if isinstance(state, str) else None,
            self._field("user").value.strip() or None,
            self._field("channel").value.strip() or None,
        )
        if wanted != self.current:
            self.current = wanted
            self.post_message(self.Changed())

    @property
    def _select(self) -> Select[str]:
        return self.query_one("#state", Select)

    def _field(self, name: str) -> Input:
        return self.query_one(f"#{name}", Input)
