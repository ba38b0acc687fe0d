"""What screens and widgets use of the application, so that they need not import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, cast

from textual.dom import DOMNode
from textual.signal import Signal

from collidium.errors import CollidiumError
from collidium_tui.session import Action, Handler, Link, ServerStatus, Session
from collidium_tui.widgets.times import Times

Result = TypeVar("Result")


class Services(Protocol):
    """The console as its screens and widgets use it; :class:`collidium_tui.app.Console` implements it."""

    session: Session
    times: Times
    status_changed: Signal[ServerStatus]
    zone_changed: Signal[bool]
    screens_changed: Signal[None]
    #: The link before the last change of the status.
    link_before: Link

    @property
    def screen_keys(self) -> Mapping[str, str]:
        """The label of the screen behind each key."""
        ...

    def act(self, handler: Handler) -> None:
        """Run ``handler`` in a worker; an error in it is shown."""

    async def perform(self, action: Action[Result], done: str = "") -> Result | None:
        """Perform an action and show its outcome; None if it was rejected or not answered."""

    def action_show(self, label: str) -> None:
        """Show the screen with that label."""

    def action_freeze(self) -> None:
        """Freeze or unfreeze the platform, after a question."""

    def report(self, error: BaseException) -> str:
        """Log an error of the console itself and return the text to show."""
        ...

    def show_rejection(self, error: CollidiumError) -> None:
        """Show that an action was not done, and why."""


def services(node: DOMNode) -> Services:
    """The services of the console that shows a screen or widget."""
    return cast("Services", node.app)
