"""All submissions of a challenge scored again by the server: a preview, a question, progress, changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from collidium.client.quantities import split_texts
from collidium.errors import CollidiumError, NotFound
from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.challenge.actions import rank_changes
from collidium_tui.session import console_of
from collidium_tui.widgets.form import Field, Form, Question
from collidium_tui.widgets.text import counted, plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Rescoring

#: Seconds between two looks at how far it is.
LOOK_SECONDS: Final = 1.0
#: Reasons that are shown; the command shows all.
MOST_REASONS: Final = 5


class Watch(ModalScreen["Rescoring | None"]):
    """Shows how far a rescoring is; the answer is what became of it, None when the window was closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close")]

    def __init__(self, challenge: str) -> None:
        super().__init__()
        self._challenge = challenge

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain(f"Scoring the submissions to {self._challenge}"), classes="dialog-title")
            yield Static("waiting for the server", id="progress")
            yield Static("\nEscape closes this window; the server goes on, and o shows it again.")

    def on_mount(self) -> None:
        _: Worker[None] = self.run_worker(self._look)

    async def _look(self) -> None:
        while True:
            try:
                seen = await console_of(self).session.call(
                    lambda client: client.admin_rescoring(self._challenge)
                )
            except CollidiumError as error:
                shown = f"no answer: {error}"
            else:
                if seen.has_ended:
                    self.dismiss(seen)
                    return
                of = f"{seen.done:,} of {seen.submissions:,}" if seen.submissions else "nothing scored yet"
                shown = f"{of}, since {console_of(self).times.show(seen.asked_at)}"
            self.query_one("#progress", Static).update(plain(shown))
            await asyncio.sleep(LOOK_SECONDS)


async def rescore(screen: ConsoleScreen[Any], name: str) -> None:
    """Score again what was submitted, when its changes were confirmed; or watch what is under way."""

    async def last(client: AsyncClient) -> Rescoring | None:
        try:
            return await client.admin_rescoring(name)
        except NotFound:  # never yet
            return None

    found = await screen.session.call(last)
    if found is not None and not found.has_ended:
        await _follow(screen, name)
    else:
        await _order(screen, name, None, apply=False)


async def split(screen: ConsoleScreen[Any], name: str) -> None:
    """Hold back a part of a challenge's events, when its changes were confirmed."""
    about = (
        "The public part counts until the challenge closes, the others then. What was submitted is scored "
        "again on the public part; you see what changes before it does."
    )
    fields = [Field("percent", "public, per cent", _percent)]
    filled = await screen.fill_in(Form(f"Split the events of {name}", fields, "Preview", about))
    if filled is not None:
        await _order(screen, name, int(filled["percent"]), apply=False)


def _percent(typed: str) -> str | None:
    is_number = typed.isascii() and typed.isdecimal() and len(typed) < 3
    return None if is_number and int(typed) else "is a number from 1 to 99"


async def _order(screen: ConsoleScreen[Any], name: str, percent: int | None, *, apply: bool) -> None:
    ordered = await screen.perform(
        lambda client, key: client.admin_rescore(
            name, public_percent=percent, apply=apply, idempotency_key=key
        )
    )
    if ordered is not None:
        await _follow(screen, name)


async def _follow(screen: ConsoleScreen[Any], name: str) -> None:
    """Show progress, then what came of it; a preview is followed by the question whether to apply it."""
    found = await screen.app.push_screen_wait(Watch(name))
    if found is None:
        return
    if found.problem:
        screen.notify(found.problem, title="Nothing has changed", severity="error", markup=False)
        return
    does = f"Rescore {name}" if found.public_percent is None else f"Split the events of {name}"
    if found.applies:
        scores = "" if found.public_percent is None else "scores are those on the public part, "
        message = f"Done: {scores}{counted(len(found.changes), 'ranks')} changed"
        screen.notify(message, title=does, timeout=10, markup=False)
        screen.refresh_now()
    elif await screen.confirm(Question(does, consequence(found), "Apply")):
        await _order(screen, name, found.public_percent, apply=True)


def consequence(found: Rescoring) -> str:
    """What applying a preview does."""
    lines = [
        *split_texts(found),
        "Ranks after all submissions are scored again:",
        rank_changes(found.changes),
    ]
    if found.unscored:
        lines.append(f"{counted(len(found.unscored), 'submissions')} cannot be scored again, and leave:")
        lines += [f"  {one}: {why}" for one, why in list(found.unscored.items())[:MOST_REASONS]]
    return "\n".join(lines)
