"""Receives submitted models and queues their evaluations."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium import accounts, challenges
from collidium.challenges import arrivals
from collidium.database import transactional
from collidium.errors import Conflict, InvalidInput, Unavailable
from collidium.inference.manifest import read_manifest
from collidium.inference.running import Model, tables_of
from collidium.model_runs import Evaluation, model_files, model_queue, model_runners
from collidium.runtime.failpoints import reached
from collidium.submissions import admissions
from collidium.submissions.submit import validated_links
from collidium.truth import model_inputs

if TYPE_CHECKING:
    from collidium.contracts.storage import Storage
    from collidium.platform import Platform
    from collidium.submissions.admissions import Admission
    from collidium.submissions.submit import CheckClaim, Predictions


async def receive(
    platform: Platform,
    admission: Admission,
    file: Predictions,
    manifest: str,
    *,
    check_claim: CheckClaim,
    model_repo: str | None = None,
    may_wait: bool = False,
) -> tuple[Evaluation, bool]:
    """Queue a model for the admission's challenge; returns its evaluation, and whether it was sent before.

    The same file with the same manifest is run once per scorer and truth, unless it failed or was cancelled.
    ``may_wait``: also while no process runs models.

    Raises
    ------
    InvalidInput
        With every problem of the manifest; also for a task without models.
    Unavailable
        No models can be run now, with the reason: no process runs them, or the truth has no inputs.
    PaymentRequired
        The account has fewer credits than a model costs.
    Conflict, Forbidden, TooManyRequests
        As for predictions.
    """
    validated_links({"model_repo": model_repo})
    task, truth = admission.task, admission.truth
    read = read_manifest(manifest.encode(), task)
    if not truth.inputs:
        what = "the truth was imported without inputs"
        raise Unavailable(f"{admission.challenge.name} runs no models now: {what}", retry_after=3600)
    if missing := model_inputs.missing(truth.inputs, read, tables_of(Model(b"", read), task)):
        problems = [{"field": "inputs", "detail": f"the events have no {name}"} for name in missing]
        raise InvalidInput("the model reads inputs that are not available", errors=problems)
    row = Evaluation(
        id=uuid.uuid4().hex,
        challenge=admission.challenge.name,
        task=task.card.name,
        account_id=admission.account.id,
        hub_username=admission.account.hub_username,
        participant=admission.participant,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        manifest=manifest,
        model_repo=model_repo,
        scorer_version=task.version,
        truth_version=truth.version,
        events=sum(map(len, truth.version.events_of(truth.events))),
    )
    if (first := await model_queue.same_as(row)) is not None:
        if await platform.storage.exists(model_files.model_key(file.sha256)):
            await _store(platform.storage, file)
        return first, True
    if admission.refusal is not None:
        raise admission.refusal
    if not may_wait:
        await model_runners.require(row.challenge)
    await admissions.require_in_time(platform, admission)
    if model_repo is not None:
        row.model_claim = await check_claim(model_repo) or "unverified"
    await admissions.require_submission_left(admission, platform.settings, now())
    # After a kill from here on, the hash of the file stays in the arrival, and the file is swept.
    await model_files.announce(admission.arrival, file.sha256)
    await _store(platform.storage, file)
    reached("receive.stored")
    try:
        return await _receive_once(platform, admission, row, file)
    except BaseException:  # raised again
        await arrivals.protect_model(admission.arrival, None)
        await model_files.discard(platform.storage, file.sha256)
        raise


async def _store(storage: Storage, file: Predictions) -> None:
    """Store a model, also if it is there: what is stored may be damaged."""
    await storage.put(model_files.model_key(file.sha256), file.path)


@transactional
async def _receive_once(
    platform: Platform, admission: Admission, row: Evaluation, file: Predictions
) -> tuple[Evaluation, bool]:
    # Lock order: the challenge first. The lock also makes the daily quota exact.
    challenge = await challenges.locked(row.challenge)
    await accounts.require_not_banned(row.account_id)
    if (first := await model_queue.same_as(row)) is not None:
        return first, True
    if challenge.ended_at is not None and not admission.practice:
        raise Conflict(f"{challenge.name} closed while the model was received")
    row.received_at = now()
    await admissions.require_submission_left(admission, platform.settings, row.received_at)
    if not admission.account.baseline:
        await model_queue.charge(row, platform.settings.model_price)
    await model_files.lock(file.sha256)
    if not await arrivals.protects_model(file.sha256, admission.arrival):
        # The lease expired a day ago, and the file was deleted.
        raise Unavailable("the model was received too slowly; send it again", retry_after=60)
    await model_queue.enqueue(row)
    await row.save(force_create=True)
    reached("receive.before_commit")
    return row, False
