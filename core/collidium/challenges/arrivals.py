"""Files on their way to challenges, for which the ends of these wait.

Each is leased by the process that receives it, or runs it. Locks of a challenge decide between a file and the
end.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium.challenges.models import Arrival

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet


async def begin(id_: str, challenge: str, until: datetime, received_at: datetime | None = None) -> None:
    """Let the end of a challenge wait for a file until a moment; ``received_at``: it is complete."""
    await Arrival(id=id_, challenge=challenge, leased_until=until, received_at=received_at).save(
        force_create=True
    )


async def renew(id_: str, until: datetime) -> None:
    """Wait longer for a file."""
    await Arrival.filter(id=id_).update(leased_until=until)


async def complete(id_: str, moment: datetime) -> None:
    """Record when a file was complete."""
    await Arrival.filter(id=id_).update(received_at=moment)


async def end(id_: str) -> None:
    """Wait no longer for a file."""
    await Arrival.filter(id=id_).delete()


async def are_awaited(challenge: str, *, complete: bool) -> bool:
    """Whether a challenge waits for files; ``complete``: for such that are received."""
    awaited = Arrival.filter(challenge=challenge, leased_until__gt=now())
    return await (awaited.filter(received_at__isnull=False) if complete else awaited).exists()


async def end_all(challenge: str) -> None:
    """Wait for no file of a challenge any longer; those of models stay protected."""
    await Arrival.filter(challenge=challenge, sha256=None).delete()


async def prune(before: datetime) -> None:
    """Delete records of files whose processes were killed before a moment."""
    await Arrival.filter(leased_until__lt=before).delete()


# -- files of models ---------------------------------------------------------------------------------------


async def protect_model(id_: str, sha256: str | None) -> None:
    """Protect the file of a model that no evaluation refers to yet from deletion; None: no longer."""
    await Arrival.filter(id=id_).update(sha256=sha256)


async def protects_model(sha256: str, id_: str | None = None) -> bool:
    """Whether a file on its way (None: any) protects the stored file of a model."""
    rows = Arrival.filter(sha256=sha256)
    return await (rows if id_ is None else rows.filter(id=id_)).exists()


async def lost_models(before: datetime) -> set[str]:
    """The hashes of models whose processes were killed before a moment."""
    return set(map(str, await _lost(before).values_list("sha256", flat=True)))


async def give_up_model(sha256: str, before: datetime) -> None:
    """Protect a model no longer for processes that were killed before a moment."""
    await _lost(before).filter(sha256=sha256).update(sha256=None)


def _lost(before: datetime) -> QuerySet[Arrival]:
    return Arrival.filter(leased_until__lt=before, sha256__not_isnull=True)
