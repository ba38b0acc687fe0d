"""The secret seeds of the draws behind standard errors, one for each version of a task's truth.

Anybody who knew the draws could compute from an error which events count for it. All scores against a version
have its seed, or the errors of their differences would be wrong. Versions that share events (the whole, its
public and its final part) have seeds of their own, so that the errors of one reveal nothing about another.
Seeds are only in the database, and so in backups, and in no response or log.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Final

from collidium.scoring.engine import Seeds
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.uncertainty import PUBLIC_SEED
from collidium.truth.models import DrawSeed

_BYTES: Final = 32
#: What the name of a version ends with whose scores are to replace those of public draws.
_SUCCESSOR: Final = "~redrawn"


async def of_scoring(task: str, truth_version: ScoredTruth) -> Seeds:
    """The seeds for scoring a file against a version, and against what it holds back."""
    held_back = truth_version.held_back
    return Seeds(
        await of_version(task, truth_version),
        PUBLIC_SEED if held_back is None else await of_version(task, held_back),
    )


async def find(task: str, truth_version: ScoredTruth | None) -> str:
    """The seed of a version's scores; that of public draws before anything is scored."""
    row = await DrawSeed.get_or_none(task=task, truth_version=truth_version)
    return PUBLIC_SEED if row is None else row.seed


async def of_version(task: str, truth_version: ScoredTruth) -> str:
    """The seed of a version, made at its first use."""
    row = await DrawSeed.get_or_none(task=task, truth_version=truth_version)
    if row is None:
        made = DrawSeed(task=task, truth_version=truth_version, seed=secrets.token_hex(_BYTES))
        await DrawSeed.bulk_create([made], ignore_conflicts=True)  # another process may be first
        row = await DrawSeed.get(task=task, truth_version=truth_version)
    return row.seed


async def is_public(task: str, truth_version: ScoredTruth) -> bool:
    """Whether the scores against a version, of an earlier release, have public draws."""
    return await DrawSeed.exists(task=task, truth_version=truth_version, seed=PUBLIC_SEED)


async def public() -> set[tuple[str, ScoredTruth]]:
    """The task and version of each truth whose scores have public draws."""
    return {(row.task, row.truth_version) for row in await DrawSeed.filter(seed=PUBLIC_SEED)}


def successor(truth_version: ScoredTruth) -> ScoredTruth:
    """The name under which the scores are stored that replace those of public draws."""
    return ScoredTruth(truth_version + _SUCCESSOR)


async def lock(task: str, truth_versions: Iterable[ScoredTruth]) -> None:
    """Lock the seeds of versions until the transaction ends, after challenges and before accounts."""
    rows = DrawSeed.filter(task=task, truth_version__in=list(truth_versions))
    await rows.order_by("truth_version").select_for_update()


async def replace(task: str, truth_version: ScoredTruth) -> None:
    """Let a version have the seed of its successor."""
    seed = await of_version(task, successor(truth_version))
    await DrawSeed.filter(task=task, truth_version=truth_version).update(seed=seed)
    await DrawSeed.filter(task=task, truth_version=successor(truth_version)).delete()
