"""What goes wrong with calls, on command."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer with this, whatever was asked."""

    status: int
    body: str = "<html><body>The gateway is not well.</body></html>"
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close the connection and answer nothing."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Keep the connection open and answer nothing until the server is closed."""


@dataclass(frozen=True, slots=True)
class Trickle:
    """Begin an answer and send a byte of it now and then, without end."""

    pause: float = 0.05


Behaviour = Answer | HangUp | Stall | Trickle


@dataclass(slots=True)
class Fault:
    """A behaviour, and the calls that it befalls."""

    behaviour: Behaviour
    #: In the path of the calls.
    where: str
    #: Of the calls; empty: any.
    method: str
    times: int
    #: Whether a call has its effect all the same, so that only its answer is lost.
    acts: bool


class Faults:
    """Those to come, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: deque[Fault] = deque()

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def next(self, method: str, path: str) -> Fault | None:
        """The fault that befalls this call, if any; it is used up when it befell as many as it should."""
        with self._lock:
            for fault in self._faults:
                if fault.where in path and fault.method in ("", method):
                    fault.times -= 1
                    if not fault.times:
                        self._faults.remove(fault)
                    return fault
        return None
