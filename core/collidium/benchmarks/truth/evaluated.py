"""Which events are scored: what made them is not for the platform to show."""

from __future__ import annotations

from collidium.benchmarks.models import ListedTask, TruthVersion
from collidium.contracts.task import EventRange
from collidium.scoring import parts


async def is_evaluated(config: str, event_id: int) -> bool:
    """Whether a listed task is scored on that event of a dataset config.

    A truth knows its config and not where else the same events lie: an event of that number is taken for one
    of them in every dataset with such a config.
    """
    return any(event_id in events for events in await _evaluated(config))


async def _evaluated(config: str) -> list[EventRange]:
    listed = await ListedTask.filter(listed=True, truth_version__not_isnull=True)
    current = {(row.name, parts.whole(row.truth_version)) for row in listed if row.truth_version is not None}
    truths = await TruthVersion.filter(task__in=[name for name, _ in current])
    return [
        EventRange(**truth.manifest["events"])
        for truth in truths
        if (truth.task, truth.version) in current and truth.manifest["dataset"] == config
    ]
