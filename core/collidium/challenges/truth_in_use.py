"""Which versions of truth challenges score against, and what follows for truth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from collidium import challenges
from collidium.challenges.models import Challenge
from collidium.database import transactional
from collidium.errors import Conflict
from collidium.scoring.truth.parts import ScoredTruth
from collidium.truth import draw_seeds, earlier, evaluated, registry
from collidium.truth.importing import ImportOptions, prepare

if TYPE_CHECKING:
    from collidium.event_display import HashesOf, StoredEvent
    from collidium.platform import Platform
    from collidium.truth.registry import PreparedTruth, TruthRecord


async def import_truth(
    platform: Platform,
    task_name: str,
    source: str,
    *,
    current: bool = True,
    public: bool = False,
    **options: Unpack[ImportOptions],
) -> TruthRecord:
    """Prepare truth from a dataset and, if it is ``current``, score the task's own challenge against it.

    Parameters
    ----------
    public : bool
        Owners may run the models of their submissions on these events and see exact scores. No challenge can
        score against such truth.
    **options
        Those of :func:`~collidium.truth.importing.prepare`.

    Raises
    ------
    Conflict
        ``public`` truth that challenges score against.
    CollidiumError
        As :func:`~collidium.truth.importing.prepare`.
    """
    prepared = await prepare(platform, task_name, source, **options)
    return await keep(prepared, current=current, public=public)


@transactional
async def keep(prepared: PreparedTruth, *, current: bool, public: bool) -> TruthRecord:
    """Keep a prepared truth; raises Conflict as :func:`import_truth`."""
    name, version = prepared.manifest["task"], ScoredTruth(prepared.manifest["version"])
    if public and (current or (name, version) in await versions()):
        raise Conflict(f"challenges score against truth {version!r}: its events are hidden, not public")
    kept = await registry.keep(prepared, public=public)
    if current:
        await _make_current(name, version)
    return replace(kept, current=current)


async def _make_current(name: str, version: ScoredTruth) -> None:
    await Challenge.bulk_create([Challenge(name=name, task=name, listed=False)], ignore_conflicts=True)
    row = await challenges.locked(name)
    if row.truth_version is None or row.truth_version.whole != version:  # otherwise a part of it counts
        # Closing was about the older truth.
        row.truth_version, row.closes_at, row.ended_at = version, None, None
        await row.save(update_fields=["truth_version", "closes_at", "ended_at", "changed_at"])


async def versions(*, listed: bool | None = None) -> set[tuple[str, ScoredTruth]]:
    """Task and whole version of each truth that challenges (``listed``: listed ones) score against."""
    filters = {} if listed is None else {"listed": listed}
    rows = await Challenge.filter(truth_version__not_isnull=True, **filters)
    return {(row.task, row.truth_version.whole) for row in rows if row.truth_version is not None}


async def list_truths() -> list[TruthRecord]:
    """Every version of every task's truth, the newest first."""
    current = {(row.task, row.truth_version) for row in await Challenge.all()}
    return [replace(one, current=(one.task, one.version) in current) for one in await registry.list_all()]


async def stored_files() -> dict[str, str]:
    """SHA-256 of the used truth and inputs in the storage, by key; empty if unknown."""
    return await registry.stored_files(await versions())


async def with_public_draws() -> list[str]:
    """The task and version of each truth that challenges score against by public draws."""
    rows = await Challenge.filter(truth_version__not_isnull=True)
    found = ((row.task, row.truth_version) for row in rows)
    counts = {(task, one) for task, truth in found if truth for one in (truth, truth.final) if one}
    return sorted(f"{task} {version}" for task, version in await draw_seeds.public() & counts)


async def is_evaluated(platform: Platform, event: StoredEvent, hashes_of: HashesOf) -> bool:
    """Whether a listed task is scored on an event, as :func:`collidium.truth.evaluated.is_evaluated`."""
    return await evaluated.is_evaluated(platform, await versions(listed=True), event, hashes_of)


async def describe_earlier(platform: Platform) -> None:
    """Describe truth that earlier releases imported (:func:`collidium.truth.earlier.describe_all`)."""
    await earlier.describe_all(platform, versions)
