"""Decides which deliveries a process starts next. Nothing here waits, sends or reads the database.

A receiver is an account and a host: of two accounts that send to one host, as customers of one provider do,
one may fail while the other works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

from cachetools import LRUCache

#: Receivers and accounts that a process remembers; those that it has not met for longest are forgotten.
REMEMBERED: Final = 10_000


class Receiver(NamedTuple):
    """Where an account's deliveries go."""

    account_id: int
    host: str


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery that is due."""

    id: int
    receiver: Receiver


class Standing(IntEnum):
    """What a process knows of a receiver, best first."""

    #: It took its last event promptly.
    ANSWERING = 0
    NEW = 1
    #: It, or where it is new the account's last, took its last event late or not at all.
    FAILING = 2


class Limits(NamedTuple):
    """Deliveries under way at once in one process: in all, of one account, and to one host."""

    process: int
    account: int
    host: int


#: Each limits the deliveries of that standing and of worse ones together: what fails leaves room for what is
#: new, and both leave room for what answers.
LIMITS: Final = {
    Standing.ANSWERING: Limits(process=64, account=4, host=16),
    Standing.NEW: Limits(process=48, account=1, host=8),
    Standing.FAILING: Limits(process=16, account=1, host=2),
}
#: With so many deliveries under way, the places that are left are for accounts that have none under way.
FIRST_ONLY: Final = 48
_IN_ALL: Final = "in all"


def in_turn(
    due: Sequence[Due],
    under_way: Iterable[Receiver],
    standing: Callable[[Receiver], Standing],
    last_turns: Mapping[int, int],
) -> list[Due]:
    """Choose the deliveries to start now, one after the other as :data:`LIMITS` and :data:`FIRST_ONLY` allow.

    The next place goes to the account with the fewest deliveries under way, of several to the one whose last
    turn is longest ago; of its deliveries to the one whose host has the fewest of them under way, then to the
    first in ``due``.

    Parameters
    ----------
    due
        The deliveries to choose from, those that wait for longest first.
    under_way
        The receiver of each delivery that this process makes already.
    standing
        Returns what is known of a receiver.
    last_turns
        A number by account that grows from turn to turn; an account without one never had a turn.
    """
    #: Under way by what is limited, and by account and receiver.
    counts: Counter[object] = Counter()

    def start(receiver: Receiver) -> None:
        counts.update([_IN_ALL, receiver, receiver.account_id, *_limits(receiver, standing(receiver))])

    def rank(delivery: Due) -> tuple[int, int, int]:
        account_id, _ = delivery.receiver
        return counts[account_id], last_turns.get(account_id, 0), counts[delivery.receiver]

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
        # What has no room now has none for the rest of this choice: counts only grow.
        limits = _limits(delivery.receiver, standing(delivery.receiver))
        if counts[delivery.receiver.account_id]:
            limits[_IN_ALL] = FIRST_ONLY
        if all(counts[limited] < limit for limited, limit in limits.items()):
            start(delivery.receiver)
            chosen.append(delivery)
    return chosen


def _limits(receiver: Receiver, standing: Standing) -> dict[object, int]:
    """All limits that a delivery counts for: those of its standing and of better ones."""
    return {
        (limiting, kind, limited): limit
        for limiting in Standing
        if limiting <= standing
        for kind, limited, limit in zip(Limits._fields, (None, *receiver), LIMITS[limiting], strict=True)
    }


class Memory:
    """What one process remembers of receivers, and of whose turn it was; bounded."""

    def __init__(self) -> None:
        #: Failures in a row, by receiver and by account.
        self._failures: LRUCache[Receiver | int, int] = LRUCache(REMEMBERED)
        self._turns = 0
        self.last_turns: LRUCache[int, int] = LRUCache(REMEMBERED)

    def standing(self, receiver: Receiver) -> Standing:
        """What is known of a receiver."""
        failures = self._failures.get(receiver)
        if failures == 0:
            return Standing.ANSWERING
        if failures or self._failures.get(receiver.account_id):
            return Standing.FAILING
        return Standing.NEW

    def turn_of(self, account_id: int) -> None:
        """Note that a delivery of the account was started."""
        self._turns += 1
        self.last_turns[account_id] = self._turns

    def answered(self, receiver: Receiver) -> None:
        """Note that the receiver took an event promptly."""
        self._failures[receiver] = self._failures[receiver.account_id] = 0

    def failed(self, receiver: Receiver) -> int:
        """Note that it did not; how often in a row that is."""
        self._failures[receiver.account_id] = 1
        self._failures[receiver] = self._failures.get(receiver, 0) + 1
        return self._failures[receiver]
