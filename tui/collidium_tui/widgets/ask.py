"""A question before an action: it names the target and the consequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from collidium_tui.widgets.text import plain


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the operator.

    ``title`` is the action with its target ("Ban ada"), ``consequence`` what will happen, ``button`` its
    label ("Ban"). ``reversible`` questions may be answered by Enter; others want ``y`` or the button.
    """

    title: str
    consequence: str
    button: str
    reversible: bool = False


class Ask(ModalScreen[bool]):
    """Asks; the answer is whether to do it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("left,right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain(self.question.title), classes="dialog-title")
            with VerticalScroll(classes="dialog-text", can_focus=False):
                yield Static(plain(self.question.consequence))
            with Horizontal(classes="dialog-buttons"):
                yield Button(f"{self.question.button} (y)", variant="warning", id="yes")
                yield Button("No (n)", id="no")

    def on_mount(self) -> None:
        self.query_one("#yes" if self.question.reversible else "#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
