"""Dialogs: questions that confirm an action, and forms with validated fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from collidium_tui.widgets.text import TYPED, plain

#: The longest note or reason that the server accepts.
LONGEST_NOTE: Final = 1000


def needed(value: str) -> str | None:
    """Check a required field."""
    return None if value else "is needed"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form. ``check`` returns the problem of a value, or None."""

    name: str
    label: str
    check: Callable[[str], str | None] = lambda value: None
    value: str = ""
    hint: str = ""
    #: Further characters are ignored, also when pasted.
    max_length: int = 200
    secret: bool = False


class Form(ModalScreen[dict[str, str] | None]):
    """A dialog with fields. Its result has each value by name, or is None if it was cancelled.

    ``about`` is shown above the fields; ``button`` is the label of the button.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, title: str, fields: Sequence[Field], button: str, about: str = "") -> None:
        super().__init__()
        self.heading = title
        self.about = about
        self.fields = tuple(fields)
        self.button = button

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain(self.heading), classes="dialog-title")
            with VerticalScroll(classes="dialog-text", can_focus=False):
                if self.about:
                    yield Static(plain(self.about), id="about")
                for field in self.fields:
                    yield Label(plain(field.label))
                    yield Input(
                        field.value,
                        placeholder=field.hint,
                        password=field.secret,
                        max_length=field.max_length,
                        restrict=TYPED,
                        id=f"field-{field.name}",
                        compact=True,
                    )
            yield Static("", id="problems", classes="problems")
            with Horizontal(classes="dialog-buttons"):
                yield Button(self.button, variant="primary", id="send")
                yield Button("Cancel", id="cancel")

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    @property
    def values(self) -> dict[str, str]:
        """The current values of the fields."""
        return {f.name: self.query_one(f"#field-{f.name}", Input).value.strip() for f in self.fields}

    def problems(self, values: Mapping[str, str]) -> list[str]:
        """Return the problems of the values, a line each."""
        found = ((field, field.check(values[field.name])) for field in self.fields)
        return [f"{field.label}: {problem}" for field, problem in found if problem]

    def on_input_submitted(self) -> None:
        self._send()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "send":
            self._send()
        else:
            self.action_give_up()

    def action_give_up(self) -> None:
        self.dismiss(None)

    def show_problems(self, problems: Sequence[str]) -> None:
        """Show problems below the fields."""
        self.query_one("#problems", Static).update(plain("\n".join(problems)))

    def _send(self) -> None:
        values = self.values
        problems = self.problems(values)
        if problems:
            self.show_problems(problems)
        else:
            self.send(values)

    def send(self, values: dict[str, str]) -> None:
        """Handle values without problems: by default, return them."""
        self.dismiss(values)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that confirms an action.

    ``title`` is the action with its target ("Ban ada"), ``consequence`` what will happen, ``button`` the
    label of the button ("Ban"). Enter confirms only ``reversible`` actions; others need ``y`` or the button.
    """

    title: str
    consequence: str
    button: str
    reversible: bool = False


class Ask(ModalScreen[bool]):
    """A dialog that asks a question. Its result is whether to do the action."""

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
