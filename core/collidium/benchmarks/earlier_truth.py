"""Describes truth that was imported before it had sketches of its events, in the background."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from collidium.benchmarks import model_inputs, truth_sketches, truth_versions
from collidium.benchmarks.models import TruthVersion
from collidium.benchmarks.truth_sketches import SKETCHES
from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.database import transactional
from collidium.datasets import fetch
from collidium.errors import CollidiumError
from collidium.files.held import locked
from collidium.runtime.waiting import entered_in_thread
from collidium.scoring.truth.published import is_readable

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Pauses after a truth could not be described, in seconds: the first, and the longest.
_PAUSE: Final = 60.0
_LONGEST_PAUSE: Final = 3600.0


async def describe_earlier(platform: Platform) -> None:
    """Make the sketches of truth that was imported before there were any, and find out whether it is public.

    Each is stored when it is complete, so a next run resumes. What fails is tried again, in growing pauses.
    """
    pause = _PAUSE
    directory = platform.settings.data_dir / "sketches"
    while True:
        async with entered_in_thread(locked(directory)):  # one process of a machine at a time
            failed = [truth for truth in await _undescribed() if not await _describe(platform, truth)]
        if not failed:
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


async def _undescribed() -> list[TruthVersion]:
    return [truth for truth in await truth_versions.counting() if SKETCHES not in truth.manifest]


async def _describe(platform: Platform, truth: TruthVersion) -> bool:
    try:
        await describe(platform, truth)
    except (CollidiumError, MissingFile, StorageUnavailable) as error:
        logger.warning(
            "copies of the events of truth %s are recognised by config and number for now: %s",
            truth.version,
            error,
        )
        return False
    return True


async def describe(platform: Platform, truth: TruthVersion) -> None:
    """Make the sketches of a truth from before it had any, and note whether everybody can read it.

    Its events are read from the stored inputs of models, or from the public dataset that its manifest names;
    of another truth there are none.

    Raises CollidiumError, MissingFile and StorageUnavailable.
    """
    card, events = platform.tasks.find(truth.task).card, truth_versions.events_of(truth)
    secret = truth_versions.secret_of(
        {name: table["sha256"] for name, table in truth.manifest["tables"].items()}
    )
    sketched = partial(
        truth_sketches.store, platform, card, events=truth_versions.events_of(truth), secret=secret
    )
    stored: truth_sketches.Stored = {}
    packaged = False
    evaluation, cache = truth.manifest.get("data", {}).get("evaluation"), truth_versions.hub_cache(platform)
    if inputs := truth.manifest.get("inputs"):
        async with model_inputs.opened(platform, inputs) as dataset:
            stored, packaged = await sketched(dataset.directory, dataset.config)
    readable = False
    if evaluation is not None:
        place = truth_versions.located(
            f"{evaluation['repository']}@{evaluation['revision']}", platform.settings, None
        )
        if not stored:
            names, config = evaluation["tables"], evaluation["config"]
            fetched = await fetch(place, names, cache, config=config, events=events)
            stored, packaged = await sketched(fetched.directory, config)
        # Truth that was not imported from there has another revision.
        if evaluation["revision"] == truth.manifest["revision"]:
            readable = await asyncio.to_thread(is_readable, place, cache)
    await _add(truth.task, truth.version, {SKETCHES: stored}, is_published=packaged or readable)


@transactional
async def _add(task: str, version: str, found: dict[str, Any], *, is_published: bool) -> None:
    """Add to the manifest of a truth and of its parts; what was published stays so."""
    for row in await TruthVersion.filter(task=task, version__startswith=version).select_for_update():
        published = row.manifest.get("is_published", False) or is_published
        row.manifest = row.manifest | found | {"is_published": published}
        await row.save(update_fields=["manifest"])
