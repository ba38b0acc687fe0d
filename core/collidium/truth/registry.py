"""The versions of truth that operators imported."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tortoise.expressions import Subquery

from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.errors import Conflict, NotFound
from collidium.files.held import scratch_directory
from collidium.scoring.predictions import largest
from collidium.scoring.truth.cache import Hashes, manifest_key, table_key
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.truth.tables import TruthTable
from collidium.scoring.truth.versions import Truth
from collidium.truth import model_inputs, sketches
from collidium.truth.models import TruthVersion
from collidium.truth.published_data import Found
from collidium.truth.sketches import SKETCHES

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedTruth:
    """A truth whose files are stored, before it is kept."""

    manifest: dict[str, Any]
    #: The hash of the stored manifest.
    sha256: str
    data: Found
    inputs: model_inputs.Stored


@dataclass(frozen=True, slots=True)
class TruthRecord:
    """A version of a task's truth; ``floors`` are the naive baseline's metrics."""

    task: str
    version: ScoredTruth
    dataset: str
    revision: str
    events: EventRange
    floors: dict[str, float]
    #: Rows of each truth table.
    rows: dict[str, int]
    imported_at: datetime
    #: The task's notes on how it was made, by name.
    notes: dict[str, str]
    #: Where users get its events, by :func:`find_data`.
    data: Found
    #: Inputs of models, by :mod:`.model_inputs`; empty if no models can be run.
    inputs: model_inputs.Stored
    #: Whether everybody could read it when it was imported.
    is_published: bool
    #: Whether a challenge scores submissions against it, where that is asked for.
    current: bool = False


@asynccontextmanager
async def opened(platform: Platform, task_name: str, version: str) -> AsyncIterator[Truth]:
    """Open a truth on this machine, as :meth:`~collidium.scoring.truth.cache.TruthCache.opened`.

    What comes from the storage is compared with the hashes that the database has.
    """
    row = await TruthVersion.get_or_none(task=task_name, version=version)
    hashes = None if row is None else await _hashes(platform, row)
    async with platform.truth_cache.opened(task_name, version, hashes) as truth:
        yield truth


async def _hashes(platform: Platform, row: TruthVersion) -> Hashes:
    tables = {name: table["sha256"] for name, table in row.manifest["tables"].items()}
    hashes = Hashes(row.manifest_sha256, tables)
    if row.manifest_sha256 is not None:
        return hashes
    async with scratch_directory(platform.settings.uploads) as scratch:
        try:
            _, sha256 = await platform.truth_cache.read_manifest(row.task, row.version, hashes, scratch)
        except (MissingFile, StorageUnavailable) as error:  # this machine may have a copy
            logger.warning("the manifest of truth %s still has no hash: %s", row.version, error)
            return hashes
    await TruthVersion.filter(id=row.id, manifest_sha256__isnull=True).update(manifest_sha256=sha256)
    return replace(hashes, manifest=sha256)


async def without_hash() -> int:
    """Return the number of truths whose manifest has no hash yet."""
    # Parts share the files of the whole.
    return await TruthVersion.filter(manifest_sha256__isnull=True, kind__isnull=True).count()


async def find(task_name: str, version: str) -> TruthRecord:
    """A version of a task's truth; raises NotFound."""
    row = await TruthVersion.get_or_none(task=task_name, version=version)
    if row is None:
        raise NotFound(f"there is no truth {version!r} of task {task_name!r}")
    return _record(row)


async def find_whole(task: str, version: str) -> TruthRecord:
    """An imported truth of a task; raises Conflict for an unknown version, a part, and public truth."""
    whole = ScoredTruth(version).whole
    if whole != version:
        raise Conflict(f"{version[:64]!r} is a part of a truth: give the whole one, {whole[:64]!r}")
    row = await TruthVersion.get_or_none(task=task, version=version)
    if row is None:
        raise Conflict(f"there is no truth {version[:64]!r} of task {task!r}: collidium truth list")
    if row.manifest.get("public"):
        raise Conflict(f"truth {version[:64]!r} is public: models are reproduced on it with exact scores")
    return _record(row)


async def list_all() -> list[TruthRecord]:
    """Every version of every task's truth, the newest first."""
    return [_record(row) for row in await TruthVersion.all().order_by("-id")]


async def add_part(task: str, part: ScoredTruth) -> None:
    """Add a part of a truth, with the files and floors of the whole."""
    truth = await TruthVersion.get(task=task, version=part.whole)
    version = TruthVersion(task=task, version=part, manifest=truth.manifest)
    await TruthVersion.bulk_create([version], ignore_conflicts=True)


def selected(**filters: Any) -> Subquery:
    """Select the versions of truth with these columns, for conditions of other packages."""
    return Subquery(TruthVersion.filter(**filters).values("version"))


async def rows_of(versions: Collection[tuple[str, str]]) -> list[TruthVersion]:
    """The rows of tasks and versions, for this package."""
    rows = await TruthVersion.filter(version__in=sorted({version for _, version in versions}))
    return [row for row in rows if (row.task, row.version) in versions]


async def public_of(task_name: str) -> TruthRecord | None:
    """The newest public truth on which models of a task can be run."""
    rows = await TruthVersion.filter(task=task_name).order_by("-id")
    usable = (row for row in rows if row.manifest.get("public") and row.manifest.get("inputs"))
    return next((_record(row) for row in usable), None)


async def stored_files(in_use: Collection[tuple[str, str]]) -> dict[str, str]:
    """SHA-256 of the truth and inputs in the storage, by key; empty if unknown.

    Of the tasks and versions in use, and of public truth.
    """
    rows = await TruthVersion.all()
    truths = [row for row in rows if (row.task, row.version) in in_use or row.manifest.get("public")]
    tables = [TruthTable(**table) for row in truths for table in row.manifest["tables"].values()]
    manifests = {manifest_key(row.task, row.version): row.manifest_sha256 or "" for row in truths}
    inputs = [model_inputs.stored_keys(row.manifest.get("inputs", {})) for row in truths]
    inputs += [sketches.stored_keys(row.manifest.get(SKETCHES, {})) for row in truths]
    found = manifests | {table_key(table): table.sha256 for table in tables}
    return dict(ChainMap(found, *inputs))


def largest_file(task: Task, truth: TruthRecord, settings: Settings) -> int:
    """Return the maximum size of predictions in bytes, by the settings and the rows of the truth."""
    rows = truth.rows[task.card.rows_of]
    return min(settings.max_submission_bytes, largest(rows, len(task.card.columns), rows))


async def keep(prepared: PreparedTruth, *, public: bool) -> TruthRecord:
    """Keep a prepared truth, and what it says of earlier imports and parts, within a transaction."""
    manifest = prepared.manifest
    name, version = manifest["task"], manifest["version"]
    await TruthVersion.bulk_create(
        [TruthVersion(task=name, version=version, manifest=_summary(manifest))], ignore_conflicts=True
    )
    await TruthVersion.filter(task=name, version=version).update(manifest_sha256=prepared.sha256)
    for truth in await TruthVersion.filter(task=name, whole=version):
        found = {"data": truth.manifest.get("data", {}) | prepared.data, "inputs": prepared.inputs}
        found |= {"public": truth.version == version and public}
        found |= {
            "is_published": truth.manifest.get("is_published", False) or manifest.get("is_published", False)
        }
        found |= {name: manifest[name] for name in (SKETCHES, "source") if name in manifest}
        truth.manifest = truth.manifest | found
        await truth.save(update_fields=["manifest"])
    return _record(await TruthVersion.get(task=name, version=version))


def _summary(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest for the database, without blocks, which may be many."""
    return {key: value for key, value in manifest.items() if key != "blocks"}


def _record(row: TruthVersion) -> TruthRecord:
    return TruthRecord(
        task=row.task,
        version=row.version,
        dataset=row.manifest["dataset"],
        revision=row.manifest["revision"],
        events=events_of(row),
        floors=row.manifest["floors"],
        rows={name: table["rows"] for name, table in row.manifest["tables"].items()},
        imported_at=row.imported_at,
        notes=row.manifest.get("notes", {}),
        data=row.manifest.get("data", {}),
        inputs=row.manifest.get("inputs", {}),
        is_published=row.manifest.get("is_published", False),
    )


def events_of(row: TruthVersion) -> EventRange:
    """The events of a truth."""
    return EventRange(**row.manifest["events"])
