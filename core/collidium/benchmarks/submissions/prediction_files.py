"""Files of predictions: where kept ones lie, and scoring one within the limits that settings set."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from collidium.benchmarks.truth import truth_versions
from collidium.errors import Unavailable
from collidium.scoring import engine, parts
from collidium.scoring.predictions import ExtraColumns

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.scoring.engine import Evaluation


def storage_key(sha256: str) -> str:
    """Where a file is kept: by its content, once however many send it."""
    return f"predictions/{sha256}.parquet"


async def score(
    platform: Platform,
    task: Task,
    truth_version: str,
    path: Path,
    extra_columns: ExtraColumns = "refuse",
) -> Evaluation:
    """Score a file, in the time there is for one.

    Raises what :func:`~collidium.scoring.engine.evaluate` raises, and Unavailable past that time.
    """
    truth = await truth_versions.open_truth(platform, task.card.name, parts.whole(truth_version))
    settings = platform.settings
    budget = asyncio.timeout(settings.evaluation_seconds)
    try:
        async with budget:
            return await engine.evaluate(
                *(task, truth, path),
                executor=platform.executor,
                limits=settings.scoring_limits,
                extra_columns=extra_columns,
                part=parts.Part.of(truth_version),
            )
    except TimeoutError:
        if not budget.expired():
            raise
        raise Unavailable(
            f"scoring took longer than {settings.evaluation_seconds:g} s and was given up; write the file "
            "sorted by event in larger pages and row groups, or try again when less is going on",
            retry_after=600,
        ) from None
