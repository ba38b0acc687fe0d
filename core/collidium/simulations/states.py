"""What a simulation request is in, and what is done next for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """What a request is in."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(StrEnum):
    """What the follower does next."""

    SUBMIT = "submit"
    FOLLOW = "follow"
    COLLECT = "collect"
    PUBLISH = "publish"
    NONE = ""


TERMINAL: Final = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
#: The steps in which there is a job to be stopped.
CANCELLABLE: Final = frozenset({Step.SUBMIT, Step.FOLLOW})
