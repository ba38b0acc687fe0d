"""The words of the freeze: what is asked before, and what is said after."""

from __future__ import annotations

from typing import Final

from collidium_tui.widgets.ask import Question

_FREEZE: Final = Question(
    "Freeze the platform",
    "New simulation requests of everybody are refused (503) from now on, until it is unfrozen. "
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
    """What is asked before."""
    return _FREEZE if freeze else _UNFREEZE


def told(freeze: bool) -> str:
    """What is said when it is done."""
    return (
        "Frozen: new simulation requests are refused."
        if freeze
        else "Open: new simulation requests are taken."
    )
