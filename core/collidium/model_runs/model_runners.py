"""The processes that run models, and the models that wait for one.

Each process records in the database every few seconds whether it runs models, or why not. Models are accepted
while a process that runs them has recorded so within :data:`CURRENT`.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tortoise.expressions import Q
from tortoise.functions import Count, Min
from tortoise.timezone import now

from collidium.errors import Unavailable
from collidium.model_runs.models import Evaluation, ModelRunner

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

#: A record that is older no longer counts. Ending processes keep theirs: a restart refuses no model.
CURRENT: Final = timedelta(seconds=30)
#: Seconds between two records of a process.
WRITE_SECONDS: Final = 5.0
#: How long the record of a process that has ended is kept.
_KEPT: Final = timedelta(days=1)
_REASON_LENGTH: Final = 400


@dataclass(frozen=True, slots=True)
class WaitingModels:
    """The models that wait for a process."""

    number: int
    #: When the one that waits for longest was queued, or its last step ended.
    oldest_at: datetime | None


async def record(reason: str) -> None:
    """Record that this process runs models, or the reason why it does not."""
    process, moment = f"{socket.gethostname()[:100]}:{os.getpid()}", now()
    values = {"looked_at": moment, "reason": reason[:_REASON_LENGTH]}
    if not await ModelRunner.filter(process=process).update(**values):
        await ModelRunner.filter(looked_at__lt=moment - _KEPT).delete()
        await ModelRunner.bulk_create([ModelRunner(process=process, **values)], ignore_conflicts=True)


async def number() -> int:
    """Return the number of processes that run models."""
    return await _current().filter(reason="").count()


async def why_none() -> str:
    """Return why no process runs models; empty if one does."""
    reasons = set(map(str, await _current().distinct().values_list("reason", flat=True)))
    if "" in reasons:
        return ""
    return "; ".join(sorted(reasons)) or f"no process that runs them for {CURRENT.total_seconds():.0f} s"


async def require(challenge: str) -> None:
    """Raise Unavailable with the reason if no process runs models."""
    if reason := await why_none():
        raise Unavailable(f"{challenge} runs no models now: {reason}", retry_after=60)


async def waiting() -> WaitingModels:
    """Return how many models wait for a process, and since when."""
    moment = now()
    unfinished = Evaluation.filter(Q(lease="") | Q(due_at__lte=moment), turn__gte=0)
    by_state = unfinished.annotate(number=Count("id"), due=Min("due_at"), checking=Min("checking_at"))
    rows = await by_state.group_by("state").values("state", "number", "due", "checking")
    # Until its first lease a model has been due since it was queued. A later step is due after a pause.
    since = [row["checking" if row["state"] == "checking" else "due"] for row in rows]
    oldest = min((one for one in since if one is not None and one <= moment), default=None)
    return WaitingModels(sum(row["number"] for row in rows), oldest)


def _current() -> QuerySet[ModelRunner]:
    # A record ahead was written before the clock was set back.
    moment = now()
    return ModelRunner.filter(looked_at__gt=moment - CURRENT, looked_at__lt=moment + CURRENT)
