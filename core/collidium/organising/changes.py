"""Operators create and edit challenges: names, dates, rules, truth, announcements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tortoise.exceptions import IntegrityError
from tortoise.timezone import now

from collidium import challenges, operations, records
from collidium.challenges import LONGEST_NAME, bump_revision, count_part, gate, is_name, locked, refuse, view
from collidium.challenges.models import Challenge
from collidium.database import transactional
from collidium.errors import Conflict, NotFound
from collidium.records.challenge_settings import CHALLENGE_SETTINGS
from collidium.runtime import display_names
from collidium.scoring.truth.parts import ScoredTruth
from collidium.submissions.models import Submission, TeamMember
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.platform import Platform

_NAMES: Final = [field.name for field in CHALLENGE_SETTINGS if field.is_text and not field.is_document]
_DOCUMENTS: Final = {field.name for field in CHALLENGE_SETTINGS if field.is_document}


@transactional
async def create(
    platform: Platform,
    name: str,
    task: str,
    fields: Mapping[str, Any],
    *,
    draft: bool = False,
    actor: str,
    http_request_id: str,
) -> records.Challenge:
    """Create a challenge of an installed task.

    ``fields`` are columns of the row that operators set, ``truth_version`` (default: that of the task's own
    challenge) and ``public_percent``, the part of the events that counts until it closes. A ``draft`` has no
    truth and is not listed, until :func:`set_truth` and :func:`publish`. Raises NotFound for an unknown task,
    InvalidInput with all problems, and Conflict for a name that is taken and a task without truth.
    """
    platform.tasks.find(task)
    refuse(problems_of_new(name, fields))
    values = dict(fields)
    percent, announcement = values.pop("public_percent", None), values.pop("announcement", None)
    version = values.pop("truth_version", None)
    if not draft:
        version = await _truth_of(task, version)
    # The task's own challenge may pay for the same predictions already.
    values.setdefault("rewarded", False)
    row = Challenge(name=name, task=task, truth_version=version, listed=not draft, **values)
    _announce(row, announcement)
    try:
        await row.save(force_create=True)
    except IntegrityError:
        raise Conflict(f"there is a challenge {name!r} already") from None
    if percent is not None:
        await count_part(row, percent)
    await operations.record(actor, "new_challenge", name, _shown(values, percent), http_request_id)
    return view(row, platform)


def problems_of_new(name: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the field and the problem of the name and the dates of a new challenge."""
    if not is_name(name):
        yield (
            "name",
            "two words or more of a-z and 0-9, joined by hyphens, such as course-2027, of up to "
            f"{LONGEST_NAME} characters",
        )
    yield from _problems(None, fields)


async def _truth_of(task: str, version: str | None) -> ScoredTruth:
    """The given version, by default that of the task's own challenge; always a whole truth."""
    if version is not None:
        return (await registry.find_whole(task, version)).version
    own = await Challenge.get_or_none(name=task)
    if own is None or own.truth_version is None:
        raise Conflict(f"task {task!r} has no truth: collidium truth import {task} --from ...")
    return own.truth_version.whole


@transactional
async def set_truth(name: str, version: ScoredTruth, percent: int | None) -> None:
    """Set the truth of a draft without one, and its public part; raises NotFound, and Conflict."""
    row = await locked(name)
    if row.truth_version is None:
        row.truth_version = version
        await row.save(update_fields=["truth_version", "changed_at"])
        if percent is not None:
            await count_part(row, percent)


@transactional
async def publish(name: str, *, actor: str) -> None:
    """List a draft, which opens now or on its date; raises NotFound."""
    row = await locked(name)
    if not row.listed:
        row.listed = True
        await bump_revision(row, "listed", "changed_at")
        await operations.record(actor, "publish_challenge", name, {}, "")


async def preview_split(
    platform: Platform,
    name: str,
    percent: int,
    *,
    task: str | None = None,
    truth_version: str | None = None,
    closes_at: datetime | None = None,
    alone: bool,
) -> records.SplitPreview:
    """Which challenges a public part of the events of a challenge would close, and until when.

    ``task`` and ``truth_version`` are those of a new challenge; ``closes_at`` is the date that it gets;
    ``alone``: for an operator of this challenge alone. Raises NotFound for an unknown challenge without a
    task, and Conflict for one without truth.
    """
    row = await challenges.find(name)
    if row is None and task is None:
        raise await challenges.unknown(name)
    if row is None:
        platform.tasks.find(task or "")
        version = await _truth_of(task or "", truth_version)
        row = Challenge(name=name, task=task, truth_version=version)
    if row.truth_version is None:
        raise Conflict(f"{name!r} has no truth: there is nothing to split")
    others = await gate.sharing(row.task, name, row.truth_version)
    part = row.truth_version.part("public", percent)
    closed = await gate.closed_by(row.task, name, part)
    return records.SplitPreview(
        challenge=name,
        public_percent=percent,
        closes=tuple(one.name for one in closed if not (alone and challenges.is_draft(one))),
        until=closes_at or row.closes_at,
        allowed=not (alone and others),
    )


@transactional
async def edit(
    platform: Platform,
    name: str,
    fields: Mapping[str, Any],
    *,
    alone: bool = False,
    actor: str,
    http_request_id: str,
) -> records.Challenge:
    """Change the given fields of a challenge; raises NotFound, InvalidInput with all problems, and Conflict.

    Dates that have passed cannot be changed. The public part of the events can be set here before the first
    submission, later by :func:`~collidium.submissions.rescoring.rescore`. ``alone``: by an
    operator of this challenge alone; raises Forbidden where that would close others.
    """
    row, values = await locked(name), dict(fields)
    refuse(_problems(row, values))
    percent = values.pop("public_percent", None)
    if percent is not None:
        if await Submission.exists(challenge=name):
            raise Conflict(
                f"there are submissions to {name} already: "
                f"`collidium challenge rescore {name} --public {percent}` scores them again"
            )
        if alone:
            await gate.require_unshared(row)
        await count_part(row, percent)
    if alone and "closes_at" in values:
        await gate.require_no_longer_closed(row, values["closes_at"])
    await _require_team_size(row, values.get("team_size"))
    _announce(row, values.pop("announcement", None))
    row.update_from_dict(values)
    row.revision += 1
    await row.save()
    await operations.record(actor, "edit_challenge", name, _shown(values, percent), http_request_id)
    return view(row, platform)


async def _require_team_size(row: Challenge, team_size: int | None) -> None:
    """Raise Conflict if a team has more members than the new size allows."""
    inside = await TeamMember.filter(challenge=row.name).values_list("team_id", flat=True)
    largest = max(Counter(inside).values(), default=0)
    if largest and team_size is not None and (team_size < 2 or team_size < largest):
        raise Conflict(
            f"a team of {row.name} has {largest} people: take such teams apart first "
            f"(collidium challenge teams {row.name} --dissolve TEAM)"
        )


def _announce(row: Challenge, text: str | None) -> None:
    if text is not None:
        row.announcements = [{"at": now().isoformat(), "text": text}, *row.announcements]


@transactional
async def correct_announcement(
    platform: Platform, name: str, at: datetime, text: str | None, *, actor: str, http_request_id: str
) -> records.Challenge:
    """Change the text of the announcement made ``at`` a time, or withdraw it (None); raises NotFound."""
    row = await locked(name)
    kept = [one for one in row.announcements if datetime.fromisoformat(one["at"]) != at]
    if len(kept) == len(row.announcements):
        raise NotFound(f"{name} has no announcement of {at.isoformat()}")
    corrected = {"at": at.isoformat(), "text": text, "edited_at": now().isoformat()}
    if text is not None:
        kept = [one if one in kept else corrected for one in row.announcements]
    row.announcements = kept
    await bump_revision(row, "announcements", "changed_at")
    action = "withdraw_announcement" if text is None else "correct_announcement"
    await operations.record(actor, action, name, {"at": at.isoformat()}, http_request_id)
    return view(row, platform)


def _problems(row: Challenge | None, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the field and the problem of dates; without ``row``, those of a new challenge."""
    moment = now()
    if row is not None and row.opens_at is None and fields.get("opens_at") is not None:
        yield "opens_at", "it is open already"
    for name in _NAMES:
        if display_names.has_hidden(fields.get(name) or ""):
            yield name, "it has invisible characters, or such that reverse the text"
    opened, closed = (row.opens_at, row.closes_at) if row is not None else (None, None)
    opens, closes = fields.get("opens_at", opened), fields.get("closes_at", closed)
    for name, word, before in (("opens_at", "opened", opened), ("closes_at", "closed", closed)):
        after, has_ended = fields.get(name), word == "closed" and row is not None and row.ended_at is not None
        if before is not None and (before <= moment or has_ended) and name in fields:
            advice = f"; {_how_to_reopen(row)}" if row is not None and word == "closed" else ""
            yield name, f"it {word} already, on {before:%Y-%m-%d %H:%M} UTC{advice}"
        elif after is not None and after <= moment:
            yield name, f"{after.isoformat()} is in the past"
    if opens is not None and closes is not None and opens >= closes:
        yield "closes_at", "it closes before it opens"
    if (frozen := fields.get("teams_frozen_at")) is not None and not moment < frozen <= (closes or frozen):
        yield "teams_frozen_at", f"{frozen.isoformat()} is in the past, or after it closes"


def _how_to_reopen(row: Challenge) -> str:
    if row.ended_at is not None and row.truth_version is not None and row.truth_version.kind is not None:
        return "with its final results it stays closed: make another challenge of the same truth"
    return f"to open it again: collidium challenge reopen {row.name} --closes DATE"


def _shown(fields: Mapping[str, Any], percent: int | None) -> dict[str, Any]:
    """The details of a change for the audit log, without the text of documents."""
    shown = {name: value for name, value in fields.items() if name not in _DOCUMENTS}
    shown["public_percent"] = percent
    return {name: str(value) for name, value in shown.items() if value is not None}
