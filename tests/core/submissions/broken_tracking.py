"""The task ``tracking`` with a scorer that raises."""

from __future__ import annotations

from collidium.contracts.task import Block
from collidium_tasks.tracking import TrackingTask


class Broken(TrackingTask):
    def score(self, block: Block) -> None:  # type: ignore[override]  # on purpose
        raise KeyError("a fault of the task")
