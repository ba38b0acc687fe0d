"""The results of a challenge in one file: all places, then submissions without one, a block at a time.

Blocks are read by key and without objects for their rows, and their records are made in a thread: neither
memory nor the pauses of the event loop grow with the number of submissions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from collidium import records
from collidium.database import rows_of
from collidium.errors import Conflict
from collidium.records import Result
from collidium.submissions import scores
from collidium.submissions.leaderboard import BoardVersion, RankCounter, current_version
from collidium.submissions.rank_intervals import Intervals

#: Submissions per query.
CHUNK: Final = 500

_Row = Mapping[str, Any]
_COLUMNS: Final = (
    "id, hub_username, submitted_at, scores, credits_earned, standing, standing_reason, uncertainties, "
    "scorer_version, truth_version, verified_at, model_repo, model_claim, team, baseline, model, rank_score"
)
_RANKED: Final = f"""
SELECT {_COLUMNS} FROM submissions
WHERE challenge = ? AND truth_version = ? AND rank_score IS NOT NULL{{represents}}{{after}}
ORDER BY rank_score DESC, submitted_at, id LIMIT ?
"""  # noqa: S608 -- names alone
_EQUAL: Final = " AND rank_score = ? AND (submitted_at, id) > (?, ?)"
_LOWER: Final = " AND rank_score < ?"
_REMOVED: Final = f"""
SELECT {_COLUMNS} FROM submissions
WHERE challenge = ? AND standing = ?{{after}} ORDER BY submitted_at, id LIMIT ?
"""  # noqa: S608 -- names alone
_LATER: Final = " AND (submitted_at, id) > (?, ?)"


async def everything(
    version: BoardVersion, *, intervals: Intervals | None, every: bool
) -> AsyncIterator[list[Result]]:
    """All places of a version, best first; with ``every`` those of all submissions, then those without rank.

    Raises Conflict if the counting events change meanwhile, as places would be missing.
    """
    counter, of = RankCounter(), intervals or {}

    def result(row: _Row) -> Result:
        rank = counter.next(row["rank_score"], bool(row["baseline"]))
        interval = of.get(row["id"])
        more = interval._asdict() if interval else {}
        return _result(row, rank=None if row["baseline"] else rank, status="ranked", **more)

    async for rows in _ranked(version, "" if every else " AND represents"):
        yield await _in_thread(rows, result)
    if (await current_version(version.challenge)).truth_version != version.truth_version:
        raise Conflict(f"{version.challenge} has been scored on other events since; try again")
    if every:
        for standing in ("disqualified", "not_final", "withdrawn"):
            async for removed in without_rank(version, standing):
                yield removed


async def without_rank(version: BoardVersion, standing: str) -> AsyncIterator[list[Result]]:
    """The submissions of a challenge with a standing."""
    after, last = "", tuple[Any, ...]()
    while rows := await rows_of(_REMOVED.format(after=after), version.challenge, standing, *last, CHUNK):
        yield await _in_thread(
            rows, lambda row: _result(row, rank=None, status=standing, reason=row["standing_reason"])
        )
        after, last = _LATER, (rows[-1]["submitted_at"], rows[-1]["id"])


async def _ranked(version: BoardVersion, represents: str) -> AsyncIterator[Sequence[_Row]]:
    """Ranked submissions: those of equal score that follow the last one, then those of lower ones."""
    place = version.challenge, version.truth_version
    starts: list[tuple[str, tuple[Any, ...]]] = [("", ())]
    while starts:
        after, last = starts.pop()
        rows = await rows_of(_RANKED.format(represents=represents, after=after), *place, *last, CHUNK)
        if rows:
            yield rows
            end = rows[-1]
            starts = [
                (_LOWER, (end["rank_score"],)),
                (_EQUAL, (end["rank_score"], end["submitted_at"], end["id"])),
            ]


async def _in_thread(rows: Sequence[_Row], make: Callable[[_Row], Result]) -> list[Result]:
    return await asyncio.to_thread(lambda: list(map(make, rows)))


def _result(row: _Row, *, rank: int | None, status: str, **more: Any) -> Result:
    model, repo = row["model"], row["model_repo"]
    return Result(
        rank=rank,
        status=status,
        submission_id=row["id"],
        hub_username=row["hub_username"],
        submitted_at=_moment(row["submitted_at"]),
        scores=_json(row["scores"]),
        credits_earned=Decimal(str(row["credits_earned"])),
        uncertainties=scores.published_errors(_json(row["uncertainties"])),
        scorer_version=row["scorer_version"],
        truth_version=row["truth_version"],
        verified_at=_moment(row["verified_at"]),
        model_repo=repo,
        model_claim=None if repo is None else row["model_claim"] or "unverified",
        team=row["team"],
        baseline=bool(row["baseline"]),
        model=None if model is None else msgspec.convert(_json(model), records.EvaluatedModel),
        **more,
    )


def _json(text: Any) -> Any:
    """What JSON says; the databases return its text."""
    return msgspec.json.decode(text) if isinstance(text, (str, bytes)) else text


def _moment(value: Any) -> Any:
    """A time; SQLite returns its text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value
