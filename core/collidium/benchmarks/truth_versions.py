"""Versions of truth that operators imported, and the public datasets with their events.

Where the events of a truth are published is looked up when it is imported: commit, size and presence are
facts then.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections import ChainMap
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from collidium.benchmarks import model_inputs, truth_sketches
from collidium.benchmarks.models import Challenge, TruthVersion
from collidium.benchmarks.truth_sketches import SKETCHES
from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.contracts.task import Card, EventRange
from collidium.database import transactional
from collidium.datasets import fetch, layout
from collidium.datasets.access import catalogue
from collidium.datasets.catalogue import HubCatalogue
from collidium.errors import Conflict, InvalidInput, NotFound, Unavailable, UnusableDataset
from collidium.files.held import scratch_directory
from collidium.hub.sources import HubDataset, locate
from collidium.records import EvalEvents, TaskData, as_json
from collidium.runtime.progress import Progress
from collidium.scoring.predictions import largest
from collidium.scoring.truth.cache import Hashes, manifest_key, table_key
from collidium.scoring.truth.importing import build_from
from collidium.scoring.truth.parts import whole
from collidium.scoring.truth.published import is_readable
from collidium.scoring.truth.tables import TruthTable
from collidium.scoring.truth.versions import Truth

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: Public datasets of a truth, as in its manifest: ``evaluation``, ``training``.
Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TruthRecord:
    """A version of a task's truth; ``floors`` are the naive baseline's metrics."""

    task: str
    version: str
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
    #: Whether a challenge scores submissions against it.
    current: bool


async def import_truth(
    platform: Platform,
    task_name: str,
    source: str,
    *,
    config: str | None = None,
    events: EventRange | None = None,
    options: Mapping[str, str] | None = None,
    inputs: str | None = None,
    train: str | None = None,
    token: str | None = None,
    current: bool = True,
    public: bool = False,
    progress: Progress | None = None,
) -> TruthRecord:
    """Prepare truth from a dataset and, if it is ``current``, score the task's own challenge against it.

    The same input gives the same version.

    Parameters
    ----------
    source : str
        A directory, or a hub repository ``namespace/name``, read with ``token``.
    events : EventRange, optional
        By default those of the card.
    options : mapping of str to str, optional
        Choices among the task's ``truth_options``.
    inputs, train : str, optional
        ``namespace/name`` or ``namespace/name@revision``: repositories that cards name for the inputs of
        these events and for training events (:func:`find_data`). By default those of an earlier import.
    public : bool
        Owners may run the models of their submissions on these events and see exact scores. No challenge can
        score against such truth.

    Raises
    ------
    NotFound
        For an unknown task or repository.
    InvalidInput
        For unknown options.
    UnusableDataset
        The dataset lacks something that the task needs.
    Conflict
        ``public`` truth that challenges score against.
    Unavailable
        The storage fails.
    """
    task = platform.tasks.find(task_name)
    settings = platform.settings
    place = locate(source, endpoint=settings.hub, token=token or "")
    cache = hub_cache(platform)
    data = await asyncio.to_thread(
        find_data,
        task.card,
        place,
        located(inputs, settings, token) if inputs else None,
        located(train, settings, token) if train else None,
        config=config,
        events=events or task.card.eval_events,
        cache=cache,
    )
    truth = await build_from(
        task,
        place,
        config=config,
        directory=platform.truth_cache.directory,
        executor=platform.executor,
        limits=settings.scoring_limits,
        events=events,
        options=options,
        cache=cache,
        progress=progress,
    )
    earlier = await TruthVersion.get_or_none(task=task_name, version=truth.version)
    try:
        sha256 = await platform.truth_cache.store(truth, earlier.manifest_sha256 if earlier else None)
        read = await model_inputs.store(
            platform, task, place, config=config, events=truth.events, cache=cache
        )
        names = sorted({*task.card.truth_sources, *task.card.inputs})
        directory = (
            place
            if isinstance(place, Path)  # a repository's tables were fetched before
            else (await fetch(place, names, cache, config=config, events=truth.events)).directory
        )
        secret = secret_of({name: table.sha256 for name, table in truth.tables.items()})
        sketched, packaged = await truth_sketches.store(
            platform, task.card, directory, config, truth.events, secret
        )
    except StorageUnavailable as error:
        raise Unavailable(f"the storage cannot keep truth: {error}") from error
    published = packaged or await asyncio.to_thread(is_readable, place, cache)
    manifest = truth.as_dict() | {"is_published": published, SKETCHES: sketched}
    if isinstance(place, HubDataset):
        manifest |= {
            "source": {"repository": place.repo, "revision": truth.revision, "config": truth.dataset}
        }
    return await _keep(manifest, sha256, data, read, current, public)


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
    return await TruthVersion.filter(manifest_sha256__isnull=True).exclude(version__contains="-").count()


async def list_truths(platform: Platform) -> list[TruthRecord]:
    """Every version of every task's truth, the newest first."""
    current = {(row.task, row.truth_version) for row in await Challenge.all()}
    rows = await TruthVersion.all().order_by("-id")
    return [_record(row, current=(row.task, row.version) in current) for row in rows]


async def find(task_name: str, version: str) -> TruthRecord:
    """A version of a task's truth; raises NotFound."""
    row = await TruthVersion.get_or_none(task=task_name, version=version)
    if row is None:
        raise NotFound(f"there is no truth {version!r} of task {task_name!r}")
    current = await Challenge.exists(task=task_name, truth_version=version)
    return _record(row, current=current)


async def public_of(task_name: str) -> TruthRecord | None:
    """The newest public truth on which models of a task can be run."""
    rows = await TruthVersion.filter(task=task_name).order_by("-id")
    usable = (row for row in rows if row.manifest.get("public") and row.manifest.get("inputs"))
    return next((_record(row, current=False) for row in usable), None)


async def stored_files() -> dict[str, str]:
    """SHA-256 of the used truth and inputs in the storage, by key; empty if unknown."""
    rows = await TruthVersion.all()
    current = await _counting()
    truths = [row for row in rows if (row.task, row.version) in current or row.manifest.get("public")]
    tables = [TruthTable(**table) for row in truths for table in row.manifest["tables"].values()]
    manifests = {manifest_key(row.task, row.version): row.manifest_sha256 or "" for row in truths}
    inputs = [model_inputs.stored_keys(row.manifest.get("inputs", {})) for row in truths]
    inputs += [truth_sketches.stored_keys(row.manifest.get(SKETCHES, {})) for row in truths]
    found = manifests | {table_key(table): table.sha256 for table in tables}
    return dict(ChainMap(found, *inputs))


def largest_file(task: Task, truth: TruthRecord, settings: Settings) -> int:
    """Return the maximum size of predictions in bytes, by the settings and the rows of the truth."""
    rows = truth.rows[task.card.rows_of]
    return min(settings.max_submission_bytes, largest(rows, len(task.card.columns), rows))


@transactional
async def _keep(
    manifest: dict[str, Any],
    sha256: str,
    data: Found,
    inputs: model_inputs.Stored,
    current: bool,
    public: bool,
) -> TruthRecord:
    name, version = manifest["task"], manifest["version"]
    if public and (current or (name, version) in await _counting()):
        raise Conflict(f"challenges score against truth {version!r}: its events are hidden, not public")
    await TruthVersion.bulk_create(
        [TruthVersion(task=name, version=version, manifest=_summary(manifest))], ignore_conflicts=True
    )
    await TruthVersion.filter(task=name, version=version).update(manifest_sha256=sha256)
    for truth in await TruthVersion.filter(task=name, version__startswith=version):
        found = {"data": truth.manifest.get("data", {}) | data, "inputs": inputs}
        found |= {"public": truth.version == version and public}
        found |= {
            "is_published": truth.manifest.get("is_published", False) or manifest.get("is_published", False)
        }
        found |= {name: manifest[name] for name in (SKETCHES, "source") if name in manifest}
        truth.manifest = truth.manifest | found
        await truth.save(update_fields=["manifest"])
    if current:
        await _make_current(name, version)
    return _record(await TruthVersion.get(task=name, version=version), current=current)


async def _counting(**filters: object) -> set[tuple[str, str]]:
    """Task and whole version of each truth that challenges score against."""
    rows = await Challenge.filter(truth_version__not_isnull=True, **filters)
    return {(row.task, whole(row.truth_version)) for row in rows if row.truth_version is not None}


async def _make_current(name: str, version: str) -> None:
    await Challenge.bulk_create([Challenge(name=name, task=name, listed=False)], ignore_conflicts=True)
    row = await Challenge.select_for_update().get(name=name)
    if row.truth_version is None or whole(row.truth_version) != version:  # otherwise a part of it counts
        # Closing was about the older truth.
        row.truth_version, row.closes_at, row.ended_at = version, None, None
        await row.save(update_fields=["truth_version", "closes_at", "ended_at", "changed_at"])


def _summary(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest for the database, without blocks, which may be many."""
    return {key: value for key, value in manifest.items() if key != "blocks"}


def _record(row: TruthVersion, *, current: bool) -> TruthRecord:
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
        current=current,
    )


def events_of(row: TruthVersion) -> EventRange:
    """The events of a truth."""
    return EventRange(**row.manifest["events"])


async def counting(*, listed: bool | None = None) -> list[TruthVersion]:
    """Return the truths that challenges score against; ``listed``: those of listed ones alone."""
    current = await _counting(**({} if listed is None else {"listed": listed}))
    rows = await TruthVersion.filter(version__in=sorted({version for _, version in current}))
    return [row for row in rows if (row.task, row.version) in current]


def secret_of(tables: Mapping[str, str]) -> str:
    """A text that only those who have the truth know, from the SHA-256 of its tables."""
    return " ".join(f"{name}={sha256}" for name, sha256 in sorted(tables.items()))


def hub_cache(platform: Platform) -> Path:
    """Return the directory of what is downloaded to import truth."""
    return platform.settings.data_dir / "cache" / "hub"


def located(text: str, settings: Settings, token: str | None) -> HubDataset:
    """``NAMESPACE/NAME`` or ``NAMESPACE/NAME@REVISION`` on the server's hub; raises InvalidInput."""
    repo, _, revision = text.partition("@")
    place = locate(repo, endpoint=settings.hub, revision=revision or None, token=token or "")
    if isinstance(place, Path):
        raise InvalidInput(f"{text}: is a directory here; users fetch events from a repository of the hub")
    return place


def find_data(
    card: Card,
    source: Path | HubDataset,
    inputs: HubDataset | None,
    train: HubDataset | None,
    *,
    config: str | None,
    events: EventRange,
    cache: Path,
) -> Found:
    """Find the public datasets of a truth; blocks.

    ``inputs`` has the inputs of the scored ``events``; by default it is ``source``, if that is a public
    repository. ``train`` has training events; scored events are left out.
    Raises as :func:`~collidium.datasets.list_tables`, and UnusableDataset if events or tables are missing.
    """
    found = {}
    place = inputs or source
    if isinstance(place, HubDataset):
        with catalogue(place, cache, current=True) as shards:
            if inputs is not None or not cast(HubCatalogue, shards).repository.private:
                found["evaluation"] = _data(shards, config, card.inputs, events)
    if train is not None:
        with catalogue(train, cache, current=True) as shards:
            configs = layout.configs(shards.sizes)
            chosen = layout.choose(shards.sizes, config if config in configs else None)
            truth = [name for name in card.truth_sources if name in configs[chosen]]
            names = tuple(dict.fromkeys([*card.inputs, *truth]))
            entries = shards.tables(chosen, names)
            first = max(entry.first_event or 0 for entry in entries)
            stop = min(-1 if entry.last_event is None else entry.last_event for entry in entries) + 1
            evaluation = found.get("evaluation")
            if evaluation is not None and evaluation.repository == train.repo:
                # The same repository has both: take the larger range that is not scored.
                parts = (first, min(events.start, stop)), (max(events.stop, first), stop)
                first, stop = max(parts, key=lambda part: part[1] - part[0])
            if not 0 <= first < stop:
                raise UnusableDataset(f"{train.repo}: its footers record no range of events for training")
            found["training"] = _data(shards, chosen, names, EventRange(first, stop))
    return {name: as_json(data) for name, data in found.items()}


def shown_data(found: Found, settings: Settings) -> dict[str, TaskData]:
    """The datasets as fields of a card, each with the command that downloads it."""
    data = msgspec.convert(found, dict[str, TaskData])
    return {f"{name}_data": _with_command(one, settings.hub_url or None) for name, one in data.items()}


def _data(shards: Any, config: str | None, tables: Sequence[str], events: EventRange) -> TaskData:
    repository = cast(HubCatalogue, shards).repository
    chosen = layout.choose(shards.sizes, config)
    paths = {path for table in tables for path in shards.holding(table, chosen, events)}
    return TaskData(
        repository=repository.repo,
        revision=repository.commit,
        config=chosen,
        tables=tuple(tables),
        events=EvalEvents(events.start, events.stop),
        bytes=sum(shards.sizes[path] for path in paths),
    )


def _with_command(data: TaskData, hub: str | None) -> TaskData:
    options = {
        "--config": data.config,
        "--tables": ",".join(data.tables),
        "--events": f"{data.events.start}:{data.events.stop}",
        "--revision": data.revision,
        "--hub": hub,
    }
    given = [text for option, value in options.items() if value for text in (option, value)]
    command = shlex.join(["collidium", "datasets", "download", data.repository, *given])
    return msgspec.structs.replace(data, hub=hub, download=command)
