"""Challenges: their states, and the events that they count and hold back.

Each task has a challenge of its own name, without dates. Operators create others
(:mod:`~collidium.organising.changes`), whose names have a hyphen, unlike those of tasks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal

from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import records
from collidium.challenges.models import Challenge
from collidium.database.statements import RowByKey
from collidium.errors import Conflict, InvalidInput, NotFound
from collidium.records import Announcement
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.uncertainty import groups_of
from collidium.truth import registry

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

    from collidium.platform import Platform

#: ``upcoming``: card and data are visible. ``open``: submissions are scored and ranked. ``closed``: none are
#: accepted. ``practice``: closed, but submissions are scored and never ranked.
State = Literal["upcoming", "open", "closed", "practice"]

#: Maximum length of names of challenges and tasks.
LONGEST_NAME: Final = 64
NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")

_by_name: Final = RowByKey(Challenge, "name")


async def find(name: str) -> Challenge | None:
    """The challenge of that name, if there is one; invalid names never reach the database."""
    return await _by_name.get_or_none(name) if _is_possible(name) else None


def _is_possible(name: str) -> bool:
    """Whether a challenge may have this name: a new one's, or that of a task."""
    return len(name) <= LONGEST_NAME and (
        NAME.fullmatch(name) is not None or (name.isascii() and name.isidentifier())
    )


def is_name(name: str) -> bool:
    """Whether a name is valid for a new challenge."""
    return NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME


async def get(name: str) -> Challenge:
    """The challenge of that name; raises NotFound."""
    row = await find(name)
    if row is None:
        raise await unknown(name)
    return row


async def visible(name: str) -> Challenge:
    """The challenge of that name; raises NotFound, also for a draft."""
    row = await get(name)
    await require_visible(row)
    return row


async def require_visible(row: Challenge) -> None:
    """Raise NotFound for a draft."""
    if is_draft(row):
        raise await unknown(row.name)


def is_draft(row: Challenge) -> bool:
    """Whether only operators see a challenge. A task's own challenge that is not listed is no draft."""
    return not row.listed and row.name != row.task


async def unknown(name: str) -> NotFound:
    """Return the error for a challenge that does not exist."""
    return NotFound(f"there is no challenge {await named(name)}; GET /v1/challenges lists those there are")


async def named(name: str) -> str:
    """An unknown name for an error message, with the nearest listed one."""
    listed = [str(one) for one in await Challenge.filter(listed=True).values_list("name", flat=True)]
    near = get_close_matches(name[:LONGEST_NAME], [one for one in listed if one != name], 1)
    return f"{name[:100]!r}: did you mean {near[0]!r}?" if near else repr(name[:100])


def state_of(row: Challenge, moment: datetime) -> State:
    """The state of a challenge at a moment; one that has ended stays ended if a clock is set back."""
    if row.ended_at is not None:
        return "practice" if row.practice else "closed"
    if row.opens_at is not None and moment < row.opens_at:
        return "upcoming"
    if row.closes_at is None or moment < row.closes_at:
        return "open"
    return "closed"


def dates_refusal(row: Challenge, moment: datetime) -> str | None:
    """What the dates of a challenge say against a submission; None: nothing."""
    match state_of(row, moment):
        case "upcoming":
            return f"it opens on {row.opens_at:%Y-%m-%d at %H:%M} UTC"
        case "closed":
            return f"it closed on {row.closes_at:%Y-%m-%d at %H:%M} UTC"
    return None


def view(row: Challenge, platform: Platform, card: records.TaskCard | None = None) -> records.Challenge:
    """Return the public record of a row."""
    truth, settings = row.truth_version, platform.settings
    task = platform.tasks.things.get(row.task)
    own = task.card.title if task and row.name == row.task else row.name
    return records.Challenge.of(
        row,
        title=row.title or own,
        state=state_of(row, now()),
        results_at=row.ended_at,
        phase=truth.kind if truth else None,
        public_percent=truth.public_percent if truth else None,
        submissions_per_day=row.submissions_per_day or settings.submissions_per_day,
        announcements=tuple(Announcement(**one) for one in row.announcements),
        card=card,
    )


async def locked(name: str) -> Challenge:
    """The challenge, its row locked until the transaction ends; raises NotFound.

    The order of locks is that of the names of challenges, then accounts, which prevents deadlocks.
    """
    row = await Challenge.select_for_update().get_or_none(name=name) if _is_possible(name) else None
    if row is None:
        raise await unknown(name)
    return row


async def with_truth(**filters: Any) -> list[Challenge]:
    """The challenges that have a truth, by name."""
    return await Challenge.filter(truth_version__isnull=False, **filters).order_by("name")


async def by_name(names: Collection[str]) -> dict[str, Challenge]:
    """The challenges of these names that exist."""
    return await Challenge.in_bulk(names, "name")


async def revision_of(name: str) -> int:
    """The version of a challenge's leaderboard; 0 without a challenge."""
    rows: list[int] = [revision for (revision,) in await Challenge.filter(name=name).values_list("revision")]
    return rows[0] if rows else 0


async def lock_all(names: Collection[str] | None = None) -> list[Challenge]:
    """Lock the challenges of these names (None: all) as :func:`locked` does, by name."""
    return await _locked(Challenge.all() if names is None else Challenge.filter(name__in=list(names)))


async def lock_sharing(task: str, truth_version: ScoredTruth, name: str = "") -> list[Challenge]:
    """Lock the challenges that score against a truth of a task, and that of this name, by name."""
    return await _locked(Challenge.filter(Q(name=name) | Q(task=task, truth_version=truth_version)))


async def _locked(rows: QuerySet[Challenge]) -> list[Challenge]:
    return await rows.order_by("name").select_for_update()


async def count_part(row: Challenge, percent: int) -> None:
    """Count only a public part of the events from now on, and hold back the rest until the challenge closes.

    Raises what :func:`public_part` raises.
    """
    await set_part(row, await public_part(row, percent))


async def public_part(row: Challenge, percent: int) -> ScoredTruth:
    """The public part of the events of a challenge; raises Conflict if they cannot be split."""
    if row.truth_version is None:
        raise Conflict(f"{row.name!r} has no truth: there is nothing to split")
    if row.closes_at is not None and row.closes_at <= now():
        raise Conflict(f"{row.name!r} has closed: it cannot be split any more")
    if row.truth_version.kind is not None:
        raise Conflict(f"the events of {row.name!r} are split already ({row.truth_version})")
    truth = await registry.find(row.task, row.truth_version)
    if len(groups_of(truth.events)) < 2:
        raise Conflict(f"{row.name!r} has one event: it cannot be split")
    return row.truth_version.part("public", percent)


async def set_part(row: Challenge, part: ScoredTruth) -> None:
    """Score against a part of the truth from now on, with the files and floors of the whole."""
    await registry.add_part(row.task, part)
    row.truth_version = part
    await row.save(update_fields=["truth_version", "changed_at"])


async def bump_revision(row: Challenge, *changed: str) -> None:
    """Save the ``changed`` fields of a locked challenge as a new version of its leaderboard."""
    row.revision += 1
    await row.save(update_fields=["revision", *changed])


def require_future(date: datetime | None, moment: datetime, field: str = "closes_at") -> None:
    """Raise InvalidInput for a date that has passed."""
    if date is not None and date <= moment:
        refuse([(field, f"{date.isoformat()} is in the past")])


def refuse(problems: Iterable[tuple[str, str]]) -> None:
    """Raise InvalidInput with all problems of fields, if there are any."""
    InvalidInput.raise_for([{"field": field, "detail": detail} for field, detail in problems])
