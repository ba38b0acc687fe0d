"""Files of submitted models and of their predictions in the storage, and their deletion.

A file is deleted in three steps, so that a file that another process receives meanwhile is not lost: its row
is marked, the file is deleted, the row is deleted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tortoise.expressions import Q, Subquery
from tortoise.models import Model
from tortoise.timezone import now

from collidium.challenges import arrivals
from collidium.database import in_chunks, transactional
from collidium.errors import Unavailable
from collidium.model_runs.models import Evaluation, ModelFile
from collidium.runtime.failpoints import reached

if TYPE_CHECKING:
    from datetime import datetime

    from collidium.contracts.storage import Storage

#: How long a deletion may take.
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
    unfinished = ModelFile.filter(deleting_until__lt=before)
    hashes = {
        *await arrivals.lost_models(before),
        *await unfinished.values_list("sha256", flat=True),
        *await over.values_list("sha256", flat=True),
    }
    for sha256 in sorted(map(str, hashes)):
        await discard(storage, sha256, before)


async def discard(storage: Storage, sha256: str, before: datetime | None = None) -> None:
    """Delete the file of a model unless an evaluation needs it or it is being received.

    Evaluations that failed or were cancelled ``before`` a moment do not need it; their manifests are deleted,
    too.
    """
    until = await _begin_deletion(sha256, before)
    if until is None:
        return
    reached("sweep.begun")
    await storage.delete(model_key(sha256))
    reached("sweep.deleted")
    await ModelFile.filter(sha256=sha256, deleting_until=until).delete()


@transactional
async def _begin_deletion(sha256: str, before: datetime | None) -> datetime | None:
    """Block this file from being received until the returned time; None if it is needed."""
    file = await lock(sha256)
    # One that is queued again meanwhile needs its file.
    await Evaluation.filter(sha256=sha256).order_by("id").only("id").select_for_update()
    over = Evaluation.filter(_has_ended(before), sha256=sha256) if before else Evaluation.filter(id="")
    kept = Evaluation.filter(sha256=sha256).exclude(manifest="")
    if before:
        await arrivals.give_up_model(sha256, before)
    is_deleted = file.deleting_until is not None and file.deleting_until > (before or now())
    needed = await kept.exclude(id__in=Subquery(over.values("id"))).exists()
    if is_deleted or needed or await arrivals.protects_model(sha256):
        return None
    await over.update(manifest="")
    file.deleting_until = now() + _DELETION_TIME
    await file.save(update_fields=["deleting_until"])
    return file.deleting_until


@transactional
async def announce(arrival: str, sha256: str) -> None:
    """Protect the file of a model from deletion; raises Unavailable while it is being deleted."""
    file = await lock(sha256)
    if file.deleting_until is not None:
        if file.deleting_until > now():
            raise Unavailable("the same model is being deleted; send it again", retry_after=60)
        file.deleting_until = None  # of a process that was killed
        await file.save(update_fields=["deleting_until"])
    await arrivals.protect_model(arrival, sha256)


async def lock(sha256: str) -> ModelFile:
    """Lock the row of a file, which may not be stored yet, after the challenge and accounts."""
    await ModelFile.bulk_create(  # updates a row without a change, which locks it
        [ModelFile(sha256=sha256)], on_conflict=["sha256"], update_fields=["sha256"]
    )
    return await ModelFile.get(sha256=sha256)


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
