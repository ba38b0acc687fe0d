"""Places where a test ends the process at once, as a power cut would.

The environment variable ``COLLIDIUM_FAILPOINT`` names one; without it these calls do nothing. They stand at
the boundaries where something outside the database has just happened or a transaction is about to end.
"""

from __future__ import annotations

import os
import signal
from typing import Final, Literal, get_args

VARIABLE: Final = "COLLIDIUM_FAILPOINT"

Failpoint = Literal[
    "place.before_charge",
    "place.before_commit",
    "place.after_commit",
    "follow.claimed",
    "submit.before",
    "submit.handed_over",
    "submit.before_commit",
    "submit.after_commit",
    "follow.polled",
    "follow.before_commit",
    "follow.completed",
    "postpone.before_commit",
    "collect.before",
    "collect.fetched",
    "collect.noted",
    "collect.file_stored",
    "collect.stored",
    "collect.before_commit",
    "publish.before",
    "publish.created",
    "publish.uploaded",
    "publish.published",
    "cancel.before_commit",
    "cancel.found",
    "cancel.asked",
    "give_up.stopped",
    "finish.cleared",
    "finish.before_refund",
    "finish.before_totals",
    "finish.before_outbox",
    "finish.before_commit",
    "finish.after_commit",
    "operate.before_commit",
    "operate.after_commit",
    "evaluate.claimed",
    "evaluate.checked",
    "evaluate.timed",
    "evaluate.predicted",
    "evaluate.scored",
    "evaluate.before_commit",
    "evaluate.kept",
    "evaluate.failed",
    "seed.signed_in",
    "seed.made",
    "seed.published",
    "seed.imported",
    "seed.submitted",
    "erase.closed",
    "erase.files_deleted",
    "rescore.kept",
    "rescore.before_commit",
    "challenge.before_end",
    "backup.database",
    "backup.files",
    "restore.copied",
    "restore.files",
]
#: All of them; the tests kill a process at each.
NAMES: Final[frozenset[str]] = frozenset(get_args(Failpoint))


def reached(name: Failpoint) -> None:
    """End this process (SIGKILL) if the test asked for it here."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
