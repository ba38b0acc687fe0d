"""Describes truth that was imported before it had sketches of its events, in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.database import transactional
from collidium.datasets import download
from collidium.errors import CollidiumError
from collidium.files.held import locked
from collidium.runtime.waiting import Backoff, entered_in_thread, in_thread
from collidium.scoring.truth.published import is_readable
from collidium.truth import model_inputs, registry, sketches
from collidium.truth.importing import secret_of
from collidium.truth.models import TruthVersion
from collidium.truth.published_data import hub_cache, located
from collidium.truth.sketches import SKETCHES

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Gives the tasks and versions of truth in use.
InUse = Callable[[], Awaitable[Collection[tuple[str, str]]]]

#: Pauses before what failed is tried again.
_BACKOFF: Final = Backoff(first=timedelta(minutes=1), longest=timedelta(hours=1))
#: Errors that say what is missing; others are logged with their traceback.
_EXPECTED: Final = (CollidiumError, MissingFile, StorageUnavailable)


async def describe_all(platform: Platform, in_use: InUse, backoff: Backoff = _BACKOFF) -> None:
    """Make the sketches of truth in use that lacks them, and find out whether it is public.

    Each is stored when it is complete, so a next run resumes. What fails is tried again, in growing pauses.
    """
    directory = platform.settings.data_dir / "sketches"
    failures = 0
    while True:
        try:
            # One process of a machine at a time; a thread that waits for the lock would delay a stop.
            async with entered_in_thread(locked(directory, wait=False)) as alone:
                if alone and await _described_all(platform, await in_use()):
                    return
            failures += alone
        except Exception:  # such as an outage of the database
            logger.warning("earlier truth could not be read; it is tried again", exc_info=True)
            failures += 1
        await asyncio.sleep(backoff.pause(max(failures, 1)).total_seconds())


async def _described_all(platform: Platform, in_use: Collection[tuple[str, str]]) -> bool:
    truths = [truth for truth in await registry.rows_of(in_use) if SKETCHES not in truth.manifest]
    return all([await _describe(platform, truth) for truth in truths])


async def _describe(platform: Platform, truth: TruthVersion) -> bool:
    """Whether it could be done; no error of one truth holds up the others."""
    try:
        await describe(platform, truth)
    except Exception as error:  # a damaged truth holds up no other
        logger.warning(
            "copies of the events of truth %s are recognised by config and number for now: %s",
            truth.version,
            error,
            exc_info=not isinstance(error, _EXPECTED),
        )
        return False
    return True


async def describe(platform: Platform, truth: TruthVersion) -> None:
    """Make the sketches of a truth from before it had any, and note whether everybody can read it.

    Its events are read from the stored inputs of models, or from the public dataset that its manifest names;
    of another truth there are none.

    Raises CollidiumError, MissingFile and StorageUnavailable.
    """
    card, events = platform.tasks.find(truth.task).card, registry.events_of(truth)
    secret = secret_of({name: table["sha256"] for name, table in truth.manifest["tables"].items()})
    sketched = partial(sketches.store, platform, card, events=registry.events_of(truth), secret=secret)
    stored: sketches.Stored = {}
    packaged = False
    evaluation, cache = truth.manifest.get("data", {}).get("evaluation"), hub_cache(platform)
    if inputs := truth.manifest.get("inputs"):
        async with model_inputs.opened(platform, inputs) as dataset:
            stored, packaged = await sketched(dataset.directory, dataset.config)
    readable = False
    if evaluation is not None:
        place = located(f"{evaluation['repository']}@{evaluation['revision']}", platform.settings, None)
        if not stored:
            names, config = evaluation["tables"], evaluation["config"]
            fetched = await in_thread(
                lambda: download(place, config, names, events, cache=cache), "earlier-truth"
            )
            stored, packaged = await sketched(fetched.directory, config)
        # Truth that was not imported from there has another revision.
        if evaluation["revision"] == truth.manifest["revision"]:
            readable = await in_thread(lambda: is_readable(place, cache), "earlier-truth")
    await _add(truth.task, truth.version, {SKETCHES: stored}, is_published=packaged or readable)


@transactional
async def _add(task: str, version: str, found: dict[str, Any], *, is_published: bool) -> None:
    """Add to the manifest of a truth and of its parts; what was published stays so."""
    for row in await TruthVersion.filter(task=task, whole=version).select_for_update():
        published = row.manifest.get("is_published", False) or is_published
        row.manifest = row.manifest | found | {"is_published": published}
        await row.save(update_fields=["manifest"])
