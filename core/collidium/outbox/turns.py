"""Fair scheduling: which deliveries a process starts next. No I/O.

A receiver is an account and a host: of two accounts with the same host, one may fail while the other works.

A thousand silent receivers take 16 of 64 deliveries, and delay new receivers by no more than a timeout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

from cachetools import LRUCache

#: Maximum number of receivers and accounts that a process remembers, the most recently used ones.
REMEMBERED: Final = 10_000


class Receiver(NamedTuple):
    """An account, and a host that receives its deliveries."""

    account_id: int
    host: str


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery that is due."""

    id: int
    receiver: Receiver


class ReceiverStanding(IntEnum):
    """The standing of a receiver with a process, best first."""

    #: It took its last event promptly.
    ANSWERING = 0
    NEW = 1
    #: It took its last event late or not at all; or it is new, and the account's last receiver did so.
    FAILING = 2


class TurnLimits(NamedTuple):
    """Maximum number of concurrent deliveries of a process: in all, of one account, and to one host."""

    process: int
    account: int
    host: int


#: Each limits the deliveries of its standing and worse ones together, so that failing receivers leave room
#: for new ones, and both for answering ones.
LIMITS: Final = {
    ReceiverStanding.ANSWERING: TurnLimits(process=64, account=4, host=16),
    ReceiverStanding.NEW: TurnLimits(process=48, account=1, host=8),
    ReceiverStanding.FAILING: TurnLimits(process=16, account=1, host=2),
}
#: With this many deliveries running, only accounts without a running delivery may start more.
FIRST_ONLY: Final = 48
_IN_ALL: Final = "in all"


def in_turn(
    due: Sequence[Due],
    under_way: Iterable[Receiver],
    standing: Callable[[Receiver], ReceiverStanding],
    last_turns: Mapping[int, int],
) -> list[Due]:
    """Choose the deliveries to start now, within :data:`LIMITS` and :data:`FIRST_ONLY`.

    Each goes to the account with the fewest running deliveries, then to the one whose last turn is longest
    ago; among its deliveries, to the receiver with the fewest running ones, then to the first in ``due``.

    Parameters
    ----------
    due
        The deliveries to choose from, oldest first.
    under_way
        The receivers of the deliveries that this process is making.
    standing
        Returns the standing of a receiver.
    last_turns
        By account, a number that grows from turn to turn; absent if it had none.
    """
    #: Running deliveries: in all, by account, by receiver, and by what a limit is for.
    counts: defaultdict[object, int] = defaultdict(int)
    #: Hosts that have no more room for a standing, until the end of this call, as counts only grow.
    full: set[tuple[ReceiverStanding, str]] = set()

    def start(receiver: Receiver) -> None:
        limited = (key for key, _ in _limits(receiver, standing(receiver)))
        for key in (_IN_ALL, receiver, receiver.account_id, *limited):
            counts[key] += 1

    def rank(delivery: Due) -> tuple[int, int, int]:
        account_id, _ = delivery.receiver
        return counts[account_id], last_turns.get(account_id, 0), counts[delivery.receiver]

    def has_room(receiver: Receiver) -> bool:
        if counts[receiver.account_id] and counts[_IN_ALL] >= FIRST_ONLY:
            return False
        place = standing(receiver), receiver.host
        if place in full:
            return False
        reached = [key for key, limit in _limits(receiver, place[0]) if counts[key] >= limit]
        if any(kind != "account" for _, kind, _ in reached):
            full.add(place)
        return not reached

    for receiver in under_way:
        start(receiver)

    chosen = []
    waiting = [(rank(delivery), position) for position, delivery in enumerate(due)]
    heapify(waiting)
    while waiting:
        known, position = waiting[0]
        delivery = due[position]
        if (now := rank(delivery)) != known:
            heapreplace(waiting, (now, position))
            continue
        heappop(waiting)
        # A delivery without room has none for the rest of this call.
        if has_room(delivery.receiver):
            start(delivery.receiver)
            chosen.append(delivery)
    return chosen


def _limits(
    receiver: Receiver, standing: ReceiverStanding
) -> Iterator[tuple[tuple[ReceiverStanding, str, object], int]]:
    """Yield the limits that a delivery counts towards: those of its standing and better ones."""
    for limiting, limits in LIMITS.items():
        if limiting <= standing:
            yield (limiting, "process", None), limits.process
            yield (limiting, "account", receiver.account_id), limits.account
            yield (limiting, "host", receiver.host), limits.host


class Memory:
    """A process's memory of the failures of receivers and the turns of accounts."""

    def __init__(self) -> None:
        #: Consecutive failures by receiver, and of the last receiver by account.
        self._failures: LRUCache[Receiver | int, int] = LRUCache(REMEMBERED)
        self._turns = 0
        self.last_turns: LRUCache[int, int] = LRUCache(REMEMBERED)

    def standing(self, receiver: Receiver) -> ReceiverStanding:
        """Return the standing of a receiver."""
        failures = self._failures.get(receiver)
        if failures == 0:
            return ReceiverStanding.ANSWERING
        if failures or self._failures.get(receiver.account_id):
            return ReceiverStanding.FAILING
        return ReceiverStanding.NEW

    def turn_of(self, account_id: int) -> None:
        """Record that a delivery of the account was started."""
        self._turns += 1
        self.last_turns[account_id] = self._turns

    def answered(self, receiver: Receiver) -> None:
        """Record a prompt success."""
        self._failures[receiver] = self._failures[receiver.account_id] = 0

    def failed(self, receiver: Receiver) -> int:
        """Record a failure; return the number of consecutive ones."""
        self._failures[receiver.account_id] = 1
        self._failures[receiver] = self._failures.get(receiver, 0) + 1
        return self._failures[receiver]
