"""What opens over a screen: the help with its keys, and the login box."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from collidium.errors import CollidiumError
from collidium_tui.session import console_of
from collidium_tui.widgets.form import Field, Form, needed


@dataclass(frozen=True, slots=True)
class Key:
    """A key, what it does, and on whose behalf."""

    #: As it is shown.
    key: str
    binding: Binding
    node: DOMNode

    @property
    def does(self) -> str:
        """What it does: in full where the footer has no room for it."""
        return self.binding.tooltip or self.binding.description

    @property
    def everywhere(self) -> bool:
        """Whether it is a key of the whole console."""
        return self.node is self.node.app


def keys_of(screen: Screen[Any]) -> Iterator[Key]:
    """The console's own keys on a screen with what has the focus there, without those that Textual has."""
    listed = set()
    for active in screen.active_bindings.values():
        if active.binding.action in listed or not active.binding.description:
            continue
        if _is_own(active.node, active.binding):
            listed.add(active.binding.action)
            yield Key(screen.app.get_key_display(active.binding), active.binding, active.node)


def _is_own(node: DOMNode, binding: Binding) -> bool:
    ours = [kind for kind in type(node).__mro__ if not kind.__module__.startswith("textual.")]
    declared = [Binding.make_bindings(vars(kind).get("BINDINGS", [])) for kind in ours]
    return any(binding.action == each.action for bindings in declared for each in bindings)


class Help(ModalScreen[None]):
    """Shown over the screen that it is about; any of its keys takes it away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,enter", "dismiss", "Close", key_display="esc")
    ]

    def __init__(self, about: Screen[Any], screens: dict[str, str]) -> None:
        """``screens``: the label of the screen behind each key."""
        super().__init__()
        self._title = getattr(about, "label", "")
        self._purpose = getattr(about, "about", "")
        # The screen's own first: those of its tables may need scrolling.
        self._keys = sorted(keys_of(about), key=lambda key: key.node is not about)
        self._screens = screens

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as dialog:
            dialog.border_title = f"Help: {self._title}"
            yield Static(Content("\n").join(self._lines()))

    def _lines(self) -> Iterable[Content]:
        if self._purpose:
            yield Content(self._purpose + "\n")
        here = [key for key in self._keys if not key.everywhere]
        if here:
            yield Content.styled("Here", "bold")
            yield from map(_line, here)
        yield Content.styled("Everywhere", "bold")
        yield from map(_line, (key for key in self._keys if key.everywhere))
        yield _entry("ctrl+p", "Palette: every action by name")
        yield _entry("tab", "Next field, table or button; shift+tab: the one before")
        yield Content.styled("Screens", "bold")
        for key, label in self._screens.items():
            yield _entry(key, label)


def _line(key: Key) -> Content:
    return _entry(key.key, key.does)


def _entry(key: str, text: str) -> Content:
    return Content.assemble((f" {key:<10}", "bold"), text)


class Login(Form):
    """Asks until the server accepts the secret; escape leaves the console."""

    def __init__(self, reason: str = "") -> None:
        field = Field("token", "Admin token", needed, secret=True, max_length=500)
        about = (
            "The secret that the server knows as ADMIN_TOKEN; where none is set, `collidium serve` keeps one "
            "in the file admin-token of its data directory. Here it is kept in memory alone."
        )
        super().__init__(
            "Sign in as operator", [field], "Sign in", f"{reason}\n\n{about}" if reason else about
        )

    def action_give_up(self) -> None:
        self.app.exit()

    def _send(self) -> None:
        values = self.values
        problems = self.problems(values)
        if problems:
            self.show_problems(problems)
        else:
            self.show_problems(["Asking the server…"])
            console_of(self).act(partial(self._try, values["token"]))

    async def _try(self, token: str) -> None:
        try:
            await console_of(self).session.sign_in(token)
        except CollidiumError as error:
            # The field is masked: a second attempt would be appended to the first.
            self.query_one(Input).select_all()
            self.show_problems([error.detail])
        else:
            self.dismiss(None)
