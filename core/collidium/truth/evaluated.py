"""Which events are those of a truth: it is not shown with them."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache

from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.errors import Unavailable
from collidium.runtime.shared_calls import SharedCalls
from collidium.scoring.truth.importing import UNNAMED
from collidium.truth import registry
from collidium.truth.sketches import SKETCHES, tables_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from collidium.event_display import HashesOf, RowHashes, StoredEvent
    from collidium.platform import Platform
    from collidium.truth.models import TruthVersion
    from collidium.truth.sketches import Stored

logger = logging.getLogger(__name__)

#: Maximum number of results that are kept.
_KEPT: Final = 10_000
#: Whether an event is one of those in a file of sketches, by its SHA-256; None if a table is not read.
Comparisons = SharedCalls[tuple["StoredEvent", str], bool | None]


def comparisons() -> Comparisons:
    """Create the cache of a process: a commit and a file do not change, so neither does the result."""
    return SharedCalls(LRUCache(_KEPT), finish=True)


async def is_evaluated(
    platform: Platform, in_use: Collection[tuple[str, str]], event: StoredEvent, hashes_of: HashesOf
) -> bool:
    """Return whether the tasks and versions of truth ``in_use`` have an event of a dataset.

    It is if a truth names its repository and commit, or if its public rows are those of a scored event,
    whatever its dataset and number are. Config and number count for a truth without sketches, and where a
    hashed table of the event cannot be read.

    Raises
    ------
    Unavailable
        The storage fails.
    """
    described = []
    for truth in await registry.rows_of(in_use):
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
    hashed = partial(hashes_of, frozenset(tables))
    for truth in described:
        is_copy = await _is_copy(platform, truth, event, hashed)
        if is_copy or (is_copy is None and _has_number(truth, event)):
            return True
    return False


async def _is_copy(
    platform: Platform, truth: TruthVersion, event: StoredEvent, hashed: Callable[[], Awaitable[RowHashes]]
) -> bool | None:
    """Whether the event is one of a truth, by its rows; None if they cannot be compared."""
    stored = truth.manifest[SKETCHES]
    call = partial(_compare, platform, stored, hashed)
    try:
        return await platform.comparisons.run((event, stored["sha256"]), call)
    except MissingFile:
        logger.warning("the sketches of truth %s are not in the storage: import it again", truth.version)
        return None
    except StorageUnavailable as error:
        raise Unavailable(f"whether event {event.event_id} is scored is not known now: {error}") from error


async def _compare(
    platform: Platform, stored: Stored, hashed: Callable[[], Awaitable[RowHashes]]
) -> bool | None:
    sketches = await platform.sketches.opened(stored)
    rows = await hashed()
    if await asyncio.to_thread(sketches.has, rows.values):
        return True
    return None if set(tables_of(stored)).intersection(rows.unread) else False


def _names(truth: TruthVersion, event: StoredEvent) -> bool:
    """Whether a manifest names the event's repository and commit as an origin of its events."""
    here = (event.repo, event.commit, event.config)
    named = (truth.manifest.get("data", {}).get("evaluation"), truth.manifest.get("source"))
    return event.event_id in registry.events_of(truth) and here in [_place(one) for one in named if one]


def _place(named: Mapping[str, Any]) -> tuple[str, str, str]:
    return named["repository"], named["revision"], named["config"]


def _has_number(truth: TruthVersion, event: StoredEvent) -> bool:
    of_config = truth.manifest["dataset"] in (event.config, UNNAMED)
    return of_config and event.event_id in registry.events_of(truth)
