"""What is stored of the parts of jobs that still run: noted before, so that nothing stays without a name."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict

from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.database import transactional
from collidium.datasets.cards import DatasetFile
from collidium.datasets.output import PartFiles
from collidium.simulations.models import TERMINAL, SimulationRequest, StoredPart
from collidium.simulations.output import storage_key
from collidium.simulations.transitions import held

logger = logging.getLogger(__name__)


@transactional
async def note(claimed: SimulationRequest, part: int, files: PartFiles, *, stored: bool) -> None:
    """Remember the files of a part, before they are stored or once they are. Raises LeaseLost."""
    row = await held(claimed)
    here = StoredPart.filter(request_id=row.id, part=part)
    if stored:
        row.parts_stored += await here.filter(stored=False).update(stored=True)
        await row.save(update_fields=["parts_stored"])
    elif not await here.update(files=asdict(files)):
        await StoredPart.create(request_id=row.id, part=part, files=asdict(files))


async def stored_parts(row: SimulationRequest) -> dict[int, PartFiles]:
    """The parts whose files are in the storage."""
    parts = await StoredPart.filter(request_id=row.id, stored=True)
    return {each.part: _files(each) for each in parts}


async def withdraw(storage: Storage, row: SimulationRequest, files: PartFiles) -> None:
    """Delete what was stored after the request had ended without an output, when nothing names it."""
    now = await SimulationRequest.get(id=row.id)
    if now.state in TERMINAL and now.output is None:
        await _delete(storage, row.request_id, files.files)


async def sweep(storage: Storage) -> None:
    """Delete the stored parts of requests that ended without an output; those that cannot be stay noted."""
    over = StoredPart.filter(request__state__in=list(TERMINAL)).select_related("request")
    while parts := await over.limit(100):
        for each in parts:
            try:
                await _delete(storage, each.request.request_id, _files(each).files)
            except StorageUnavailable as error:
                logger.warning("parts of requests that have ended stay in the storage for now: %s", error)
                return
            await each.delete()


async def _delete(storage: Storage, request_id: str, files: Iterable[DatasetFile]) -> None:
    for file in files:
        await storage.delete(storage_key(request_id, file.sha256))


def _files(part: StoredPart) -> PartFiles:
    return PartFiles([DatasetFile(**file) for file in part.files["files"]], part.files["columns"])
