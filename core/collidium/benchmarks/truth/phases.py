"""Phases of a benchmark: the leaderboard goes by a public part of the events until an operator closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium import operations
from collidium.benchmarks.models import Challenge, Submission, TruthVersion
from collidium.benchmarks.submissions import replay, scorings
from collidium.benchmarks.submissions.replay import Replay, Target
from collidium.contracts.task import EventRange
from collidium.database import transactional
from collidium.errors import Conflict
from collidium.scoring.parts import Part
from collidium.scoring.uncertainty import groups_of

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform


async def begin(platform: Platform, task_name: str, public_percent: int, *, actor: str) -> Part:
    """Let the leaderboard go by so many per cent of the events (1 to 99), and hold the rest back.

    Raises NotFound, and Conflict where there is no truth, only one event, a phase already, or a submission
    that was scored on all events.
    """
    platform.tasks.find(task_name)
    return await _begin_once(task_name, public_percent, actor)


@transactional
async def _begin_once(task_name: str, public_percent: int, actor: str) -> Part:
    challenge = await Challenge.select_for_update().get_or_none(name=task_name)
    if challenge is None or challenge.truth_version is None:
        raise Conflict(f"task {task_name!r} has no truth: there is nothing to split")
    if Part.of(challenge.truth_version) is not None:
        raise Conflict(f"the events of task {task_name!r} are split already ({challenge.truth_version})")
    if await Submission.exists(challenge=task_name, truth_version=challenge.truth_version):
        raise Conflict(
            f"submissions to task {task_name!r} were scored on all events already; import other truth first"
        )
    whole = await TruthVersion.get(task=task_name, version=challenge.truth_version)
    if len(groups_of(EventRange(**whole.manifest["events"]))) < 2:
        raise Conflict(f"task {task_name!r} has one event: it cannot be split")
    part = Part(challenge.truth_version, "public", public_percent)
    await _count(challenge, part, whole)
    await operations.record(actor, "split", task_name, {"truth_version": str(part)}, "")
    return part


async def close(platform: Platform, task_name: str, *, actor: str, http_request_id: str) -> Part:
    """End the public phase: what was held back counts, and is paid; once, however often it is asked for.

    Raises NotFound, and Conflict for a task whose events are not split.
    """
    task = platform.tasks.find(task_name)
    return await _close_once(platform, task, actor, http_request_id)


@transactional
async def _close_once(platform: Platform, task: Task, actor: str, http_request_id: str) -> Part:
    name = task.card.name
    # The task's row first, as wherever bests are decided.
    challenge = await Challenge.select_for_update().get_or_none(name=name)
    part = Part.of(challenge.truth_version) if challenge is not None else None
    if challenge is None or part is None:
        raise Conflict(f"task {name!r} has no public phase to be closed")
    if part.kind == "final":
        return part
    await _count(challenge, part.final, await TruthVersion.get(task=name, version=part.truth))
    target = Target(name, task, str(part.final))
    done = {scoring.submission_id for scoring in await scorings.of_versions(*target.versions)}
    problems = {
        row.id: f"not scored by scorer {task.version} on these events: collidium benchmark rescore {name}"
        for row in await Submission.filter(challenge=name)
        if row.id not in done
    }
    plan = Replay(platform.settings, target, problems, actor, "close", http_request_id)
    await replay.run(plan, apply=True)
    return part.final


async def _count(challenge: Challenge, part: Part, whole: TruthVersion) -> None:
    """Score against a part of the truth from now on; its files, and its floors, are those of the whole."""
    row = TruthVersion(task=challenge.name, version=str(part), manifest=whole.manifest)
    await TruthVersion.bulk_create([row], ignore_conflicts=True)
    challenge.truth_version = str(part)
    await challenge.save(update_fields=["truth_version", "changed_at"])
