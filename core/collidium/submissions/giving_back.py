"""What releases up to 0.4 took because a scoring process died: models that were "not scored", and places.

Such models failed for good, and files lost their place as if they could not be decoded. Rows do not record
how these differ from models and files that were rejected for their content, so all of them are tried again,
a model once. Verdicts since the upgrade of the database are rightful: they stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import accounts, challenges, operations
from collidium.challenges import Challenge
from collidium.database import applied_at, transactional
from collidium.model_runs import Evaluation, model_queue
from collidium.submissions import replay, scores
from collidium.submissions.models import Rescoring, Submission
from collidium.submissions.replay import ReplayTarget

if TYPE_CHECKING:
    from collidium.contracts.task import Task

#: The code of models that were scored no further.
_TAKEN: Final = "not_scored"
#: The action in the audit log.
_ACTION: Final = "give_back"
_UNKNOWN: Final = "the reason is not recorded"
#: The migration of the release that no longer takes anything.
_UPGRADE: Final = "0007_waiting_files"
#: What decides about all places of a challenge anew, in the audit log.
_DECIDE: Final = ("rescore", "split", "end_challenge")


@dataclass(frozen=True, slots=True)
class TakenModel:
    """A model that ended as ``not_scored``."""

    evaluation_id: str
    challenge: str
    hub_username: str
    #: The credits that it cost.
    price: Decimal
    #: Why it cannot be run again; empty: it can.
    not_run: str


@dataclass(frozen=True, slots=True)
class TakenPlace:
    """A submission with scores that has no place since a rescoring or the end of its challenge."""

    submission_id: str
    challenge: str
    hub_username: str
    reason: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What may have been taken."""

    models: tuple[TakenModel, ...]
    places: tuple[TakenPlace, ...]

    @property
    def challenges(self) -> list[str]:
        """The challenges in which places were taken."""
        return sorted({place.challenge for place in self.places})


async def taken(tasks: Mapping[str, Task], before: datetime | None = None) -> Taken:
    """Return what may have been taken from models and submissions to these tasks.

    Only verdicts from ``before`` a moment; default: when the database was upgraded from such a release.
    """
    before = before or await applied_at(_UPGRADE) or now()
    rows = {row.name: row for row in await challenges.with_truth()}
    failed = await model_queue.failed_with(_TAKEN, before)
    models = [row for row in failed if not await _is_given_back(row)]
    places = [
        place
        for row in rows.values()
        if row.task in tasks and not await operations.is_recorded_since(before, _DECIDE, row.name)
        for place in await _places(row, tasks[row.task])
    ]
    return Taken(tuple(_model(model, rows.get(model.challenge)) for model in models), tuple(places))


async def _is_given_back(model: Evaluation) -> bool:
    """Whether a model was given back before, so that its present verdict is one of this release."""
    return await operations.recorded(_ACTION, model.id) is not None


def _model(model: Evaluation, challenge: Challenge | None) -> TakenModel:
    return TakenModel(model.id, model.challenge, model.hub_username, model.price, _why_not(model, challenge))


def _why_not(model: Evaluation, challenge: Challenge | None) -> str:
    if not model.manifest:
        return "its file is no longer stored"
    if challenge is None or challenge.ended_at is not None:
        return "its challenge has ended"
    if model.again and not model.public and not model_queue.runs_on(challenge, model.truth_version):
        return "these events no longer count"
    return ""


async def _places(challenge: Challenge, task: Task) -> list[TakenPlace]:
    target = ReplayTarget.current(challenge, task)
    rows = [row for row in await replay.submissions_to(challenge.name) if row.standing == "ranked"]
    placed = {
        (row.account_id, row.sha256)
        for row in rows
        if row.truth_version == target.truth_version and row.rank_score is not None
    }
    last = await Rescoring.get_or_none(challenge=challenge.name)
    reasons = last.unscored if last else {}
    return [
        TakenPlace(row.id, challenge.name, row.hub_username, reasons.get(row.id, _UNKNOWN))
        for row in rows
        if target.needs_scores(row)
        and (row.account_id, row.sha256) not in placed
        and _was_left(row, target, any_placed=bool(placed))
    ]


def _was_left(row: Submission, target: ReplayTarget, *, any_placed: bool) -> bool:
    """Whether a rescoring or the end left a submission behind without a place that its scores deserve."""
    if scores.rank_score(target.task.card, row) is None:
        return False
    if row.truth_version == target.truth_version:
        return row.rank_score is None
    return any_placed and row.truth_version.whole == target.truth_version.whole


@transactional
async def give_back(model: TakenModel, *, actor: str, http_request_id: str = "") -> None:
    """Refund a model, free its place of the day, and run it again without a charge if that is possible.

    Idempotent: a model that has been given back is left alone.
    """
    challenge = await challenges.locked(model.challenge)
    row = await model_queue.locked(await model_queue.find(model.evaluation_id))
    if row.state != "failed" or row.code != _TAKEN or await _is_given_back(row):
        return
    await model_queue.blame_platform(row)
    if row.price:
        note = f"model for {row.challenge}: given back"
        await accounts.post(
            row.account_id, row.price, reason="evaluation_refund", reference=row.id, note=note
        )
    details = {"challenge": row.challenge, "refunded": str(row.price), "not_run": _why_not(row, challenge)}
    await operations.record(actor, _ACTION, row.id, details, http_request_id)
    if not _why_not(row, challenge):
        await model_queue.run_again(row)
