"""Which events listed tasks are scored on: their truth is not shown."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from collidium.benchmarks import truth_versions
from collidium.benchmarks.truth_sketches import SKETCHES, tables_of
from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.errors import Unavailable
from collidium.scoring.truth.importing import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collidium.benchmarks.models import TruthVersion
    from collidium.event_display import HashesOf, StoredEvent
    from collidium.platform import Platform

logger = logging.getLogger(__name__)


async def is_evaluated(platform: Platform, event: StoredEvent, hashes_of: HashesOf) -> bool:
    """Return whether a listed task is scored on an event of a dataset.

    It is if a truth names its repository and commit, or if its public rows are those of a scored event,
    whatever its dataset and number are. Of a truth without sketches, config and number count.

    Raises
    ------
    Unavailable
        The storage fails.
    """
    described = []
    for truth in await truth_versions.counting(listed=True):
        if _names(truth, event):
            return True
        if truth.manifest.get(SKETCHES):
            described.append(truth)
        elif _has_number(truth, event):
            return True
    await platform.sketches.keep([truth.manifest[SKETCHES] for truth in described])
    if not described:
        return False
    tables = {table for truth in described for table in tables_of(truth.manifest[SKETCHES])}
    hashes = await hashes_of(frozenset(tables))
    for truth in described:
        try:
            sketches = await platform.sketches.opened(truth.manifest[SKETCHES])
        except MissingFile:
            logger.warning("the sketches of truth %s are not in the storage: import it again", truth.version)
            if _has_number(truth, event):
                return True
            continue
        except StorageUnavailable as error:
            raise Unavailable(
                f"whether event {event.event_id} is scored is not known now: {error}"
            ) from error
        if await asyncio.to_thread(sketches.has, hashes):
            return True
    return False


def _names(truth: TruthVersion, event: StoredEvent) -> bool:
    """Whether a manifest names the event's repository and commit as an origin of its events."""
    here = (event.repo, event.commit, event.config)
    named = (truth.manifest.get("data", {}).get("evaluation"), truth.manifest.get("source"))
    return event.event_id in truth_versions.events_of(truth) and here in [_place(one) for one in named if one]


def _place(named: Mapping[str, Any]) -> tuple[str, str, str]:
    return named["repository"], named["revision"], named["config"]


def _has_number(truth: TruthVersion, event: StoredEvent) -> bool:
    of_config = truth.manifest["dataset"] in (event.config, UNNAMED)
    return of_config and event.event_id in truth_versions.events_of(truth)
