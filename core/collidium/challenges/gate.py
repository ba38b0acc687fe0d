"""Whether tasks and challenges accept submissions, and why not.

One rule for cards, quotas, pages, commands and refusals. Which accounts may submit is in
:mod:`~collidium.submissions.admissions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from tortoise.timezone import now

from collidium.challenges import dates_refusal, is_draft, state_of
from collidium.challenges.models import Challenge
from collidium.errors import Conflict, Forbidden
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.plugins import Provided
    from collidium.scoring.truth.parts import ScoredTruth


#: Why a listed task is not there: a server loads plugins when it starts.
NOT_INSTALLED: Final = "no installed plugin provides it, or not yet when the server started: then restart it"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a challenge accepts no submissions."""

    cause: Literal["not listed", "not installed", "no truth", "dates", "held back"]
    reason: str


async def refusal_of(
    tasks: Provided[Task], row: Challenge, moment: datetime, *, early: bool = False
) -> Refusal | None:
    """Why a challenge accepts no submissions at a moment; None if it does.

    ``early``: for a baseline, before it is listed and opens.
    """
    return (await refusals_of(tasks, [row], moment, early=early)).get(row.name)


async def refusals_of(
    tasks: Provided[Task], rows: Sequence[Challenge], moment: datetime, *, early: bool = False
) -> dict[str, Refusal]:
    """Why challenges accept no submissions at a moment, by name; those that accept them are left out."""
    holders = await _holding({row.task for row in rows if row.truth_version is not None})
    found = {row.name: _refusal(tasks, row, holders, moment, early) for row in rows}
    return {name: refusal for name, refusal in found.items() if refusal is not None}


def _refusal(
    tasks: Provided[Task], row: Challenge, holders: Iterable[Challenge], moment: datetime, early: bool
) -> Refusal | None:
    version = scored_version(row, moment)
    if not (row.listed or early):
        return Refusal("not listed", "not listed")
    if row.task not in tasks.things:
        return Refusal("not installed", NOT_INSTALLED)
    if version is None:
        return Refusal("no truth", "no truth yet")
    if not early and (closed := dates_refusal(row, moment)):
        return Refusal("dates", closed)
    if others := _revealed(holders, row.task, row.name, version):
        return Refusal("held back", _held_back_by(others))
    return None


def scored_version(row: Challenge, moment: datetime) -> ScoredTruth | None:
    """The truth that a submission of a moment is scored against: for practice the public part."""
    version = row.truth_version
    if version is not None and version.public is not None and state_of(row, moment) == "practice":
        return version.public
    return version


# -- what other challenges hold back -----------------------------------------------------------------------


async def _holding(tasks: Collection[str]) -> list[Challenge]:
    """The running challenges of these tasks that hold back events."""
    if not tasks:
        return []
    return await Challenge.filter(
        task__in=tasks, ended_at__isnull=True, truth_version__in=registry.selected(kind="public")
    ).order_by("name")


def _revealed(holders: Iterable[Challenge], task: str, name: str, version: ScoredTruth) -> list[Challenge]:
    held = [(other, other.truth_version) for other in holders]
    return [
        other
        for other, part in held
        if part is not None and other.task == task and other.name != name and _reveals(version, part)
    ]


def _reveals(version: ScoredTruth, held: ScoredTruth) -> bool:
    """Whether scores against a version reveal what a public part holds back.

    Of two public parts of a truth, the larger contains the smaller.
    """
    is_within = version.is_public and (version.public_percent or 0) <= (held.public_percent or 0)
    return version.whole == held.whole and not is_within


async def revealed_by(row: Challenge, version: ScoredTruth) -> list[Challenge]:
    """The other running challenges whose held-back events scores against ``version`` would reveal."""
    return _revealed(await _holding({row.task}), row.task, row.name, version)


async def is_held_back(task: str, version: ScoredTruth) -> bool:
    """Whether a running challenge holds back events of a truth."""
    public = registry.selected(task=task, whole=version.whole, kind="public")
    return await Challenge.exists(task=task, ended_at__isnull=True, truth_version__in=public)


async def require_concealed(row: Challenge, version: ScoredTruth) -> None:
    """Raise Conflict if scores would reveal events that another challenge holds back."""
    if others := await revealed_by(row, version):
        raise Conflict(f"{row.name} accepts no submissions: {_held_back_by(others)}")


def _held_back_by(others: Sequence[Challenge]) -> str:
    shown = [other for other in others if not is_draft(other)]
    if not shown:
        return "another challenge holds back events of the same truth"
    names = ", ".join(other.name for other in shown)
    dates = [other.closes_at for other in shown if other.closes_at is not None]
    until = f"on {max(dates):%Y-%m-%d at %H:%M} UTC" if len(dates) == len(shown) else "by command"
    verb, closes = ("holds", "it closes") if len(shown) == 1 else ("hold", "they have closed, the last")
    return f"{names} {verb} back events of the same truth until {closes} {until}"


# -- what a split closes -----------------------------------------------------------------------------------


async def sharing(task: str, name: str, version: ScoredTruth) -> list[Challenge]:
    """The other challenges that score, or will score, against a truth or a part of it."""
    same = registry.selected(task=task, whole=version.whole)
    rows = await Challenge.filter(task=task, truth_version__in=same).order_by("name")
    return [
        row
        for row in rows
        if row.name != name and (row.listed or is_draft(row)) and state_of(row, now()) != "closed"
    ]


async def closed_by(task: str, name: str, part: ScoredTruth) -> list[Challenge]:
    """The other challenges that accept no submissions while ``name`` counts a public part of their truth."""
    others = await sharing(task, name, part)
    scored = [(row, scored_version(row, now())) for row in others]
    return [row for row, version in scored if version is not None and _reveals(version, part)]


async def require_unshared(row: Challenge) -> None:
    """Raise Forbidden if another challenge scores against the truth of this one."""
    if row.truth_version is not None and (others := await sharing(row.task, row.name, row.truth_version)):
        names = ", ".join(other.name for other in others if not is_draft(other)) or "another challenge"
        raise Forbidden(
            f"{row.name} may be split only where nothing else scores on its truth, and {names} does: "
            "it needs the scope benchmarks for all challenges"
        )


async def require_no_longer_closed(row: Challenge, closes_at: datetime | None) -> None:
    """Raise Forbidden if a later end of this challenge would close others for longer."""
    part = row.truth_version
    is_later = row.closes_at is not None and (closes_at is None or closes_at > row.closes_at)
    if part is None or not part.is_public or row.ended_at is not None or not is_later:
        return
    if others := await closed_by(row.task, row.name, part):
        names = ", ".join(other.name for other in others if not is_draft(other)) or "another challenge"
        raise Forbidden(
            f"{names} would accept no submissions for longer, as {row.name} holds back events of the same "
            "truth: it needs the scope benchmarks for all challenges"
        )
