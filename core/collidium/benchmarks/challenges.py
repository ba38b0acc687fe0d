"""Challenges: what they are, who makes them, and whether they take submissions now.

Each task has one of its own name, which has no dates; the others are made by operators. Their names have a
hyphen, which no task's has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal

from tortoise.exceptions import IntegrityError
from tortoise.timezone import now

from collidium import operations, records
from collidium.benchmarks.models import Challenge, Submission, TeamMember, TruthVersion
from collidium.contracts.task import EventRange
from collidium.database import transactional
from collidium.database.statements import RowByKey
from collidium.errors import Conflict, InvalidInput, NotFound
from collidium.records import Announcement
from collidium.scoring.parts import Part, whole
from collidium.scoring.uncertainty import groups_of

if TYPE_CHECKING:
    from collidium.platform import Platform

#: ``upcoming``: card and data are visible. ``open``: submissions are scored and ranked. ``closed``: none is
#: taken. ``practice``: closed, but what is submitted is scored, and never ranked.
State = Literal["upcoming", "open", "closed", "practice"]

#: Of challenges, and of tasks.
LONGEST_NAME: Final = 64
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")

_by_name: Final = RowByKey(Challenge, "name")


async def find(name: str) -> Challenge | None:
    """The challenge of that name, if there is one. What cannot be a name never reaches the database."""
    if len(name) > LONGEST_NAME or not (_NAME.fullmatch(name) or (name.isascii() and name.isidentifier())):
        return None
    return await _by_name.get_or_none(name)


async def get(name: str) -> Challenge:
    """The same; raises NotFound."""
    row = await find(name)
    if row is None:
        raise await unknown(name)
    return row


async def visible(name: str) -> Challenge:
    """The same, but for drafts, which are not shown; raises NotFound."""
    row = await get(name)
    await require_visible(row)
    return row


async def require_visible(row: Challenge) -> None:
    """Raise NotFound for a draft."""
    if is_draft(row):
        raise await unknown(row.name)


def is_draft(row: Challenge) -> bool:
    """Whether only operators see a challenge: of all that are not listed, tasks alone were."""
    return not row.listed and row.name != row.task


async def unknown(name: str) -> NotFound:
    """Return the error for a challenge that does not exist."""
    return NotFound(f"there is no challenge {await named(name)}; GET /v1/challenges lists those there are")


async def named(name: str) -> str:
    """A name that does not exist, with the nearest that is listed."""
    listed = [str(one) for one in await Challenge.filter(listed=True).values_list("name", flat=True)]
    near = get_close_matches(name[:LONGEST_NAME], listed, 1)
    return f"{name[:100]!r}: did you mean {near[0]!r}?" if near else repr(name[:100])


def state_of(row: Challenge, moment: datetime) -> State:
    """The state of a challenge at a moment; one that has ended stays so where a clock is set back."""
    if row.ended_at is not None:
        return "practice" if row.practice else "closed"
    if row.opens_at is not None and moment < row.opens_at:
        return "upcoming"
    if row.closes_at is None or moment < row.closes_at:
        return "open"
    return "closed"


def why_closed(row: Challenge, moment: datetime) -> str | None:
    """Why a challenge takes no submissions at a moment; None: it takes them."""
    match state_of(row, moment):
        case "upcoming":
            return f"it opens on {row.opens_at:%Y-%m-%d at %H:%M} UTC"
        case "closed":
            return f"it closed on {row.closes_at:%Y-%m-%d at %H:%M} UTC"
    return None


async def list_challenges(platform: Platform) -> list[records.Challenge]:
    """All that are listed and installed: those with a date first, the next to close first."""
    rows = [row for row in await Challenge.filter(listed=True) if row.task in platform.tasks.things]
    moment = now()
    rows.sort(key=lambda row: (row.closes_at is None, row.closes_at or moment, row.name))
    return [view(row, platform) for row in rows]


def view(row: Challenge, platform: Platform, card: records.TaskCard | None = None) -> records.Challenge:
    """Return the public record of a row."""
    part, settings = Part.of(row.truth_version), platform.settings
    task = platform.tasks.things.get(row.task)
    own = task.card.title if task and row.name == row.task else row.name
    return records.Challenge.of(
        row,
        title=row.title or own,
        state=state_of(row, now()),
        results_at=row.ended_at,
        phase=part.kind if part else None,
        public_percent=part.public_percent if part else None,
        submissions_per_day=row.submissions_per_day or settings.submissions_per_day,
        announcements=tuple(Announcement(**one) for one in row.announcements),
        card=card,
    )


async def revealed_by(row: Challenge, version: str) -> list[Challenge]:
    """The challenges not ended whose held-back events scores against ``version`` in this one would show.

    Of two public parts of a truth, the smaller is a part of the larger.
    """
    shown, public = Part.of(version), f"{whole(version)}-public"
    others = Challenge.filter(task=row.task, ended_at__isnull=True, truth_version__startswith=public)
    held = [(other, Part.of(other.truth_version)) for other in await others.exclude(name=row.name)]
    return [
        other
        for other, part in held
        if part is not None
        and not (shown and shown.kind == "public" and shown.public_percent <= part.public_percent)
    ]


async def is_held_back(task: str, version: str) -> bool:
    """Whether any challenge that has not ended holds back events of a truth."""
    public = f"{whole(version)}-public"
    return await Challenge.exists(task=task, ended_at__isnull=True, truth_version__startswith=public)


async def require_concealed(row: Challenge, version: str) -> None:
    """Raise Conflict where scores would show what another challenge holds back."""
    if others := await revealed_by(row, version):
        other = next((other.name for other in others if not is_draft(other)), "another challenge")
        raise Conflict(f"{row.name} takes no submissions while {other} holds back events of the same truth")


# -- made and changed by operators ---------------------------------------------------------------------


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
    """Make a challenge of an installed task.

    ``fields`` are those of the row that an operator sets, with ``truth_version``, by default the task's own,
    and ``public_percent``: so much of the events counts until it closes, the rest then. A ``draft`` has no
    truth and is not listed, until :func:`set_truth` and :func:`publish`. Raises NotFound for an unknown task,
    InvalidInput with all problems, and Conflict for a name that is taken and a task without truth.
    """
    platform.tasks.find(task)
    _refuse(problems_of_new(name, fields))
    try:
        row = await _create_once(name, task, dict(fields), draft, actor, http_request_id)
    except IntegrityError:
        raise Conflict(f"there is a challenge {name!r} already") from None
    return view(row, platform)


def is_name(name: str) -> bool:
    """Whether a new challenge may have this name."""
    return _NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME


def problems_of_new(name: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is wrong with the name and the dates of a new challenge."""
    problems = _problems(None, fields)
    if not is_name(name):
        detail = f"two words or more of a-z and 0-9, joined by hyphens, of up to {LONGEST_NAME} characters"
        problems.insert(0, {"field": "name", "detail": detail})
    return problems


@transactional
async def _create_once(
    name: str, task: str, fields: dict[str, Any], draft: bool, actor: str, http_request_id: str
) -> Challenge:
    percent, announcement = fields.pop("public_percent", None), fields.pop("announcement", None)
    version = fields.pop("truth_version", None)
    if not draft:
        version = await _truth_of(task, version)
    # The same predictions may be paid for in the task's own challenge already.
    fields.setdefault("rewarded", False)
    row = Challenge(name=name, task=task, truth_version=version, listed=not draft, **fields)
    _announce(row, announcement)
    await row.save(force_create=True)
    if percent is not None:
        await count_part(row, percent)
    await operations.record(actor, "new_challenge", name, _shown(fields, percent), http_request_id)
    return row


async def _truth_of(task: str, version: str | None) -> str:
    """The version that was asked for, or that of the task's own challenge; of whole truths."""
    if version is not None:
        return str((await whole_truth(task, version)).version)
    own = await Challenge.get_or_none(name=task)
    if own is None or own.truth_version is None:
        raise Conflict(f"task {task!r} has no truth: collidium truth import {task} --from ...")
    return whole(own.truth_version)


async def whole_truth(task: str, version: str) -> TruthVersion:
    """An imported version of a task's truth; raises Conflict for none, for a part of one, and if public."""
    if Part.of(version):
        raise Conflict(f"{version[:64]!r} is a part of a truth: give the whole one, {whole(version)[:64]!r}")
    row = await TruthVersion.get_or_none(task=task, version=version)
    if row is None:
        raise Conflict(f"there is no truth {version[:64]!r} of task {task!r}: collidium truth list")
    if row.manifest.get("public"):
        raise Conflict(f"truth {version[:64]!r} is public: models run again on it show their exact scores")
    return row


@transactional
async def set_truth(name: str, version: str, percent: int | None) -> None:
    """Give a draft its truth, of which ``percent`` is public; once. Raises NotFound, and Conflict."""
    row = await locked(name)
    if row.truth_version is None:
        row.truth_version = version
        await row.save(update_fields=["truth_version", "changed_at"])
        if percent is not None:
            await count_part(row, percent)


@transactional
async def publish(name: str, *, actor: str) -> None:
    """List a draft: from now on it is open, or opens at its date. Raises NotFound."""
    row = await locked(name)
    if not row.listed:
        row.listed = True
        row.revision += 1
        await row.save(update_fields=["listed", "revision", "changed_at"])
        await operations.record(actor, "publish_challenge", name, {}, "")


async def edit(
    platform: Platform, name: str, fields: Mapping[str, Any], *, actor: str, http_request_id: str
) -> records.Challenge:
    """Change what is given of a challenge; raises NotFound, InvalidInput with all problems, and Conflict.

    What has begun stays begun: the date of opening is kept then, and that of closing once it has passed. The
    part of the events that is public is set before the first submission here, later by
    :func:`~collidium.benchmarks.submissions.rescoring.rescore`.
    """
    return view(await _edit_once(name, dict(fields), actor, http_request_id), platform)


@transactional
async def _edit_once(name: str, fields: dict[str, Any], actor: str, http_request_id: str) -> Challenge:
    row = await locked(name)
    _refuse(_problems(row, fields))
    percent = fields.pop("public_percent", None)
    if percent is not None:
        if await Submission.exists(challenge=name):
            raise Conflict(
                f"there are submissions to {name} already: "
                f"`collidium challenge rescore {name} --public {percent}` scores them again"
            )
        await count_part(row, percent)
    await _require_room(row, fields.get("team_size"))
    _announce(row, fields.pop("announcement", None))
    row.update_from_dict(fields)
    row.revision += 1
    await row.save()
    await operations.record(actor, "edit_challenge", name, _shown(fields, percent), http_request_id)
    return row


async def _require_room(row: Challenge, team_size: int | None) -> None:
    """Raise Conflict where a team has more people than it may have from now on."""
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


async def correct_announcement(
    platform: Platform, name: str, at: datetime, text: str | None, *, actor: str, http_request_id: str
) -> records.Challenge:
    """Give the announcement of a moment another text, or withdraw it where that is None; raises NotFound."""
    return view(await _correct_once(name, at, text, actor, http_request_id), platform)


@transactional
async def _correct_once(
    name: str, at: datetime, text: str | None, actor: str, http_request_id: str
) -> Challenge:
    row = await locked(name)
    kept = [one for one in row.announcements if datetime.fromisoformat(one["at"]) != at]
    if len(kept) == len(row.announcements):
        raise NotFound(f"{name} has no announcement of {at.isoformat()}")
    corrected = {"at": at.isoformat(), "text": text, "edited_at": now().isoformat()}
    if text is not None:
        kept = [one if one in kept else corrected for one in row.announcements]
    row.announcements = kept
    row.revision += 1
    await row.save(update_fields=["announcements", "revision", "changed_at"])
    action = "withdraw_announcement" if text is None else "correct_announcement"
    await operations.record(actor, action, name, {"at": at.isoformat()}, http_request_id)
    return row


async def locked(name: str) -> Challenge:
    """The challenge, its row locked until the transaction ends; raises NotFound."""
    if await find(name) is None:
        raise await unknown(name)
    return await Challenge.select_for_update().get(name=name)


async def count_part(row: Challenge, percent: int) -> Part:
    """Score against so many per cent of the events from now on, and hold the rest back until it closes.

    Raises what :func:`public_part` raises.
    """
    part = await public_part(row, percent)
    await set_part(row, part)
    return part


async def public_part(row: Challenge, percent: int) -> Part:
    """So many per cent of the events of a challenge, which may be split.

    Raises Conflict where there is no truth, only one event, or a part already.
    """
    if row.truth_version is None:
        raise Conflict(f"{row.name!r} has no truth: there is nothing to split")
    if row.closes_at is not None and row.closes_at <= now():
        raise Conflict(f"{row.name!r} has closed: it cannot be split any more")
    if Part.of(row.truth_version) is not None:
        raise Conflict(f"the events of {row.name!r} are split already ({row.truth_version})")
    truth = await TruthVersion.get(task=row.task, version=row.truth_version)
    if len(groups_of(EventRange(**truth.manifest["events"]))) < 2:
        raise Conflict(f"{row.name!r} has one event: it cannot be split")
    return Part(row.truth_version, "public", percent)


async def set_part(row: Challenge, part: Part) -> None:
    """Score against a part of the truth from now on; its files, and its floors, are those of the whole."""
    truth = await TruthVersion.get(task=row.task, version=part.truth)
    version = TruthVersion(task=row.task, version=str(part), manifest=truth.manifest)
    await TruthVersion.bulk_create([version], ignore_conflicts=True)
    row.truth_version = str(part)
    await row.save(update_fields=["truth_version", "changed_at"])


def require_future(date: datetime | None, moment: datetime, field: str = "closes_at") -> None:
    """Raise InvalidInput for a date that has passed."""
    if date is not None and date <= moment:
        _refuse([{"field": field, "detail": f"{date.isoformat()} is in the past"}])


def _problems(row: Challenge | None, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is wrong with the dates, which is seen only together; without ``row``, of a new challenge."""
    moment, problems = now(), []
    if row is not None and row.opens_at is None and fields.get("opens_at") is not None:
        problems.append({"field": "opens_at", "detail": "it is open already"})
    opens, closes = (fields.get(name, getattr(row, name, None)) for name in ("opens_at", "closes_at"))
    for name, word in (("opens_at", "opened"), ("closes_at", "closed")):
        before, after = getattr(row, name, None), fields.get(name)
        has_ended = word == "closed" and getattr(row, "ended_at", None) is not None
        if before is not None and (before <= moment or has_ended) and name in fields:
            detail = f"it {word} already, on {before:%Y-%m-%d %H:%M} UTC"
            if row is not None and word == "closed":
                detail += f"; {_how_to_reopen(row)}"
            problems.append({"field": name, "detail": detail})
        elif after is not None and after <= moment:
            problems.append({"field": name, "detail": f"{after.isoformat()} is in the past"})
    if opens is not None and closes is not None and opens >= closes:
        problems.append({"field": "closes_at", "detail": "it closes before it opens"})
    if (frozen := fields.get("teams_frozen_at")) is not None and not moment < frozen <= (closes or frozen):
        detail = f"{frozen.isoformat()} is in the past, or after it closes"
        problems.append({"field": "teams_frozen_at", "detail": detail})
    return problems


def _how_to_reopen(row: Challenge) -> str:
    if row.ended_at is not None and Part.of(row.truth_version) is not None:
        return "with its final results it stays closed: make another challenge of the same truth"
    return f"to open it again: collidium challenge reopen {row.name} --closes DATE"


def _refuse(problems: list[dict[str, Any]]) -> None:
    if problems:
        detail = "; ".join(f"{problem['field']}: {problem['detail']}" for problem in problems)
        raise InvalidInput(detail, errors=problems)


def _shown(fields: Mapping[str, Any], percent: int | None) -> dict[str, Any]:
    """What the audit log has of a change; of long texts, that there were some."""
    shown = {name: value for name, value in fields.items() if name != "rules"} | {"public_percent": percent}
    return {name: str(value) for name, value in shown.items() if value is not None}
