"""Files of submitted models and of their predictions in the storage, and their deletion.

A file is deleted in three steps, so that a file that another process receives meanwhile is not lost.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tortoise.expressions import Q, Subquery
from tortoise.models import Model
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import challenges
from collidium.challenges.models import Arrival
from collidium.database import in_chunks, transactional
from collidium.errors import Unavailable
from collidium.model_runs.models import Evaluation
from collidium.runtime.failpoints import reached

if TYPE_CHECKING:
    from datetime import datetime

    from collidium.contracts.storage import Storage

#: The challenge of arrivals that mark a file as being deleted, and how long that may take.
_DELETED: Final = ""
_DELETION_TIME: Final = timedelta(minutes=10)


def model_key(sha256: str) -> str:
    """The storage key of a model."""
    return f"models/{sha256}.onnx"


async def stored_models() -> dict[str, str]:
    """SHA-256 of every model in the storage, by key; without those of erased accounts."""
    found = await Evaluation.exclude(manifest="").distinct().values_list("sha256", flat=True)
    return {model_key(str(sha256)): str(sha256) for sha256 in found}


async def stored_predictions() -> list[str]:
    """SHA-256 of predictions of models on other events; without those of erased accounts."""
    rows = Evaluation.filter(again=True, predictions__not_isnull=True).exclude(manifest="")
    return [str(sha256) for sha256 in await rows.distinct().values_list("predictions", flat=True)]


async def sweep(storage: Storage, before: datetime) -> None:
    """Delete unused files of models, and of those that failed or were cancelled before a moment."""
    over = Evaluation.filter(_has_ended(before)).exclude(manifest="")
    hashes = {
        *await _lost(before).values_list("sha256", flat=True),
        *await over.values_list("sha256", flat=True),
    }
    for sha256 in sorted(map(str, hashes)):
        await discard(storage, sha256, before)


async def discard(storage: Storage, sha256: str, before: datetime | None = None) -> None:
    """Delete the file of a model unless an evaluation needs it or it is being received.

    Evaluations that failed or were cancelled ``before`` a moment do not need it; their manifests are deleted,
    too.
    """
    deletion = await _begin_deletion(sha256, before)
    if deletion is None:
        return
    reached("sweep.begun")
    await storage.delete(model_key(sha256))
    reached("sweep.deleted")
    await deletion.delete()


@transactional
async def _begin_deletion(sha256: str, before: datetime | None) -> Arrival | None:
    """Block this file from being received until the returned row is deleted; None if it is needed."""
    # Models are announced and queued under their challenge's lock.
    await challenges.lock_all()
    over = Evaluation.filter(_has_ended(before), sha256=sha256) if before else Evaluation.filter(id="")
    kept = Evaluation.filter(sha256=sha256).exclude(manifest="")
    if before:
        await _lost(before).filter(sha256=sha256).update(sha256=None)
    needed = await kept.exclude(id__in=Subquery(over.values("id"))).exists()
    if needed or await Arrival.exists(sha256=sha256):
        return None
    await over.update(manifest="")
    deletion = Arrival(
        id=uuid.uuid4().hex, challenge=_DELETED, leased_until=now() + _DELETION_TIME, sha256=sha256
    )
    await deletion.save(force_create=True)
    return deletion


async def announce(arrival: str, sha256: str) -> None:
    """Protect the file of a model from deletion, in a transaction that has locked its challenge.

    Raises Unavailable while it is being deleted.
    """
    deletions = Arrival.filter(challenge=_DELETED, sha256=sha256)
    if await deletions.filter(leased_until__gt=now()).exists():
        raise Unavailable("the same model is being deleted; send it again", retry_after=60)
    await deletions.delete()  # of processes that were killed
    await Arrival.filter(id=arrival).update(sha256=sha256)


def _lost(before: datetime) -> QuerySet[Arrival]:
    """Files that killed processes have stored or begun to delete."""
    return Arrival.filter(leased_until__lt=before, sha256__not_isnull=True)


def _has_ended(before: datetime) -> Q:
    return Q(state__in=("failed", "cancelled"), ended_at__lt=before)


async def submitted_by(account_id: int) -> tuple[list[str], list[str]]:
    """SHA-256 of the models that only this account has sent, and of their predictions on other events."""
    alone = await sent_only_by(account_id, Evaluation)
    # Predictions contain the hash of their model, so equal ones are of the same model.
    made = Evaluation.filter(account_id=account_id, again=True, predictions__not_isnull=True)
    predicted = [
        str(sha256)
        for some in in_chunks(alone)
        for sha256 in await made.filter(sha256__in=some).values_list("predictions", flat=True)
    ]
    return alone, sorted(predicted)


async def sent_only_by(account_id: int, rows: type[Model]) -> list[str]:
    """SHA-256 of the files of an account's rows that no other account has sent."""
    own = {
        str(sha256) for sha256 in await rows.filter(account_id=account_id).values_list("sha256", flat=True)
    }
    alone = set(own)
    for some in in_chunks(own):
        others = rows.filter(sha256__in=some).exclude(account_id=account_id)
        alone.difference_update(map(str, await others.values_list("sha256", flat=True)))
    return sorted(alone)
