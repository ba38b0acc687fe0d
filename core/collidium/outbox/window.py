"""Which due deliveries a process chooses from; the cost of a look does not grow with the backlog.

To rank all that is due would be exact, and quadratic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from collidium.database import rows_of
from collidium.outbox.turns import Due, Receiver

#: No next attempt lies further ahead than this. One that does was written before the clock was set back, and
#: is due.
HORIZON: Final = timedelta(hours=2)
#: Maximum number of deliveries that are seen because they are the oldest, and because they are the newest.
OLDEST: Final = 256
NEWEST: Final = 32
#: Maximum number of receivers that are seen because it is their turn, and of the hosts of one account.
ROUND: Final = 256
HOSTS: Final = 16
#: Maximum number of deliveries of one account to choose from.
EACH: Final = 8

_OLDEST: Final = """
SELECT * FROM (
    SELECT id, account_id, host, next_attempt_at FROM webhook_deliveries
    WHERE state = 'pending' AND next_attempt_at <= ? ORDER BY next_attempt_at, id LIMIT ?
) AS due
UNION ALL SELECT * FROM (
    SELECT id, account_id, host, next_attempt_at FROM webhook_deliveries
    WHERE state = 'pending' AND next_attempt_at > ? ORDER BY next_attempt_at, id LIMIT ?
) AS ahead
"""
#: The newest, which have no step, and a round: each step searches the index for the next receiver and its
#: first delivery, which may not be due.
_ROUND: Final = """
WITH RECURSIVE heads AS (
    SELECT * FROM (
        SELECT id, account_id, host, next_attempt_at, 1 AS hosts, 1 AS step FROM webhook_deliveries
        WHERE state = 'pending' AND account_id > ? ORDER BY account_id, host, next_attempt_at, id LIMIT 1
    ) AS first
    UNION ALL
    SELECT head.id, head.account_id, head.host, head.next_attempt_at,
        CASE WHEN head.account_id = heads.account_id THEN hosts + 1 ELSE 1 END, step + 1
    FROM heads JOIN webhook_deliveries AS head ON head.id = coalesce(
        (SELECT id FROM webhook_deliveries AS other WHERE state = 'pending' AND hosts < ?
            AND other.account_id = heads.account_id AND other.host > heads.host
            ORDER BY host, next_attempt_at, id LIMIT 1),
        (SELECT id FROM webhook_deliveries AS other WHERE state = 'pending'
            AND other.account_id > heads.account_id ORDER BY account_id, host, next_attempt_at, id LIMIT 1)
    ) WHERE step < ?
)
SELECT id, account_id, host, next_attempt_at, next_attempt_at <= ? AS is_due, step FROM heads
UNION ALL SELECT * FROM (
    SELECT id, account_id, host, next_attempt_at, next_attempt_at <= ? AS is_due, 0 AS step
    FROM webhook_deliveries WHERE state = 'pending' AND next_attempt_at <= ?
    ORDER BY next_attempt_at DESC, id DESC LIMIT ?
) AS newest ORDER BY step
"""


class DueWindow:
    """What one process sees of the due deliveries.

    If they are few, all of them. Else the oldest, the newest, and the first to each of some receivers, which
    are the next ones in a round of all accounts: so no backlog hides a delivery for longer than a round.
    """

    def __init__(self) -> None:
        #: The account that the round has reached.
        self._reached = 0

    async def look(self, moment: datetime) -> list[Due]:
        """Return due deliveries: the first of each account before the second of any, the oldest first."""
        rows = [*await rows_of(_OLDEST, moment, OLDEST, moment + HORIZON, OLDEST)]
        if len(rows) >= OLDEST:
            found = await rows_of(_ROUND, self._reached, HOSTS, ROUND, moment, moment, moment, NEWEST)
            is_whole_round = not found or found[-1]["step"] < ROUND
            self._reached = 0 if is_whole_round else found[-1]["account_id"]
            rows += [row for row in found if row["is_due"]]
        return _ranked(rows)


def _ranked(rows: Iterable[Mapping[str, Any]]) -> list[Due]:
    """Order them by their place among those of their account, whose hosts alternate, then by time."""
    found = {row["id"]: row for row in rows}
    by_time = sorted(found.values(), key=lambda row: (row["next_attempt_at"], row["id"]))
    due = [Due(row["id"], Receiver(row["account_id"], row["host"])) for row in by_time]
    by_host = [delivery for _, delivery in _in_turns(due, lambda delivery: delivery.receiver)]
    by_account = _in_turns(by_host, lambda delivery: delivery.receiver.account_id)
    return [delivery for place, delivery in by_account if place <= EACH]


def _in_turns(due: Iterable[Due], key: Callable[[Due], Hashable]) -> list[tuple[int, Due]]:
    """Return deliveries with their place among those with the same key, the first of all keys first."""
    counts: Counter[Hashable] = Counter()
    places = []
    for delivery in due:
        counts[key(delivery)] += 1
        places.append((counts[key(delivery)], delivery))
    return sorted(places, key=itemgetter(0))
