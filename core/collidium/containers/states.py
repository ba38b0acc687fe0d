"""What an engine tells of a container."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict

#: States of containers that will not run any more, and of those that were made and do not run yet.
_OVER: Final = frozenset({"exited", "stopped", "dead"})
_NEW: Final = frozenset({"created", "configured", "initialized"})


@dataclass(frozen=True, slots=True)
class Container:
    """A container, as seen once; times in seconds since 1970."""

    #: Whether it was made and does not run yet.
    is_new: bool
    #: Whether it will not run any more.
    is_over: bool
    #: 0 to 255; above 128: the signal that ended it.
    exit_code: int
    out_of_memory: bool
    started: float
    finished: float


class _State(TypedDict):
    Status: str
    ExitCode: int
    OOMKilled: bool
    StartedAt: str
    FinishedAt: str


class ContainerState(TypedDict):
    """What docker and podman agree on in the answer of ``inspect``."""

    Name: str
    State: _State


def container_of(told: ContainerState) -> tuple[str, Container]:
    """Its name and how it is; raises ValueError, TypeError or KeyError for what tells neither."""
    state = told["State"]
    status = state["Status"].lower()
    return told["Name"].lstrip("/"), Container(
        is_new=status in _NEW,
        is_over=status in _OVER,
        exit_code=int(state["ExitCode"]) % 256,
        out_of_memory=bool(state["OOMKilled"]),
        started=datetime.fromisoformat(state["StartedAt"]).timestamp(),
        finished=datetime.fromisoformat(state["FinishedAt"]).timestamp(),
    )
