"""The frame of every screen, with server status, tabs and age of the data; the help and login dialogs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.style import Style
from textual.widgets import Input, Static

from collidium.errors import CollidiumError
from collidium_tui.session import Link, ServerStatus, console_of
from collidium_tui.widgets.form import Field, Form, needed
from collidium_tui.widgets.text import duration, plain


@dataclass(frozen=True, slots=True)
class Key:
    """A key, its binding, and the widget, screen or application that has the binding."""

    #: The key as shown.
    key: str
    binding: Binding
    node: DOMNode

    @property
    def does(self) -> str:
        """What it does: the long text if there is one, else that of the footer."""
        return self.binding.tooltip or self.binding.description

    @property
    def everywhere(self) -> bool:
        """Whether it works on every screen."""
        return self.node is self.node.app


def keys_of(screen: Screen[Any]) -> Iterator[Key]:
    """Yield the console's own keys that are active on a screen, without Textual's."""
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
    """The help of a screen, with its keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,enter", "dismiss", "Close", key_display="esc")
    ]

    def __init__(self, about: Screen[Any], screens: dict[str, str]) -> None:
        """``screens``: key -> label of its screen."""
        super().__init__()
        self._title = getattr(about, "label", "")
        self._purpose = getattr(about, "about", "")
        # The screen's keys first, then those of its tables.
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
    """Asks for the operators' token until the server accepts it; escape ends the console."""

    def __init__(self, reason: str = "") -> None:
        field = Field("token", "Admin token", needed, secret=True, max_length=500)
        about = (
            "The server's ADMIN_TOKEN; if it is not set, `collidium serve` creates one in the file "
            "admin-token of its data directory. The console keeps it only in memory."
        )
        super().__init__(
            "Sign in as operator", [field], "Sign in", f"{reason}\n\n{about}" if reason else about
        )

    def action_give_up(self) -> None:
        self.app.exit()

    def send(self, values: dict[str, str]) -> None:
        self.show_problems(["Asking the server…"])
        console_of(self).act(partial(self._try, values["token"]))

    async def _try(self, token: str) -> None:
        try:
            await console_of(self).session.sign_in(token)
        except CollidiumError as error:
            # The field is masked: without this, a second attempt would be appended to the first.
            self.query_one(Input).select_all()
            self.show_problems([error.detail])
        else:
            self.dismiss(None)


class StatusBar(Static):
    """The status of the server. Colours only repeat the text."""

    def on_mount(self) -> None:
        console = console_of(self)
        console.status_changed.subscribe(self, self._draw)
        self._draw(console.session.status)

    def _draw(self, status: ServerStatus) -> None:
        self.set_class(bool(status.frozen), "frozen")
        self.set_class(status.link is not Link.UP, "away")
        # Padded, so that the whole line is reversed.
        self.update(plain(f" {' │ '.join(parts(status))}".ljust(self.app.size.width), single_line=True))

    def on_resize(self) -> None:
        self._draw(console_of(self).session.status)


def parts(status: ServerStatus) -> list[str]:
    """Return the parts of the status bar, most urgent first."""
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
    """The labels of the screens, shortened if the terminal is narrow."""

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
        # With screens of plugins, only the current label may fit in full.
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
    """The age of the data, the time zone and the last error; or STALE and why refreshing fails."""

    def __init__(self) -> None:
        super().__init__()
        self._at: datetime | None = None
        self._trouble = ""

    def on_mount(self) -> None:
        self.set_interval(1, self._draw)
        self._draw()

    def refresh_text(self, at: datetime | None, trouble: str) -> None:
        """Show the age of data fetched ``at`` that time, None if there are none yet."""
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
            shown = trouble or "waiting for the first response"
        else:
            age = f"data {duration(times.now() - self._at)} old"
            shown = f"STALE: {age} · {trouble}" if trouble else f"{age} · times in {times.zone}{self._past()}"
        self.update(plain(shown, single_line=True))

    def _past(self) -> str:
        console = console_of(self)
        times, status = console.times, console.session.status
        if status.last_error_at is None:
            return ""
        return f" · last error, at {times.brief(status.last_error_at)}: {status.last_error}"
