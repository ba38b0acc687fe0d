"""The texts of the freeze: the question before, and the message after."""

from __future__ import annotations

from typing import Final

from collidium_tui.widgets.ask import Question

_FREEZE: Final = Question(
    "Freeze the platform",
    "New simulation requests of all accounts are refused (503) from now on, until it is unfrozen. "
    "Requests under way go on, and submissions to benchmarks are taken as before.",
    "Freeze",
    reversible=True,
)
_UNFREEZE: Final = Question(
    "Unfreeze the platform",
    "New simulation requests are taken, and charged, again.",
    "Unfreeze",
    reversible=True,
)

QUESTIONS: Final = (_FREEZE, _UNFREEZE)


def question(freeze: bool) -> Question:
    """The question before it is done."""
    return _FREEZE if freeze else _UNFREEZE


def confirmation(freeze: bool) -> str:
    """The message once it is done."""
    return (
        "Frozen: new simulation requests are refused."
        if freeze
        else "Open: new simulation requests are taken."
    )
