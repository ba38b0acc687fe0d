"""Models are accepted only where a process runs them; what waits is counted."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.waiting import eventually_async
from tortoise.timezone import now

from collidium import accounts
from collidium.accounts.models import Account
from collidium.challenges import truth_in_use
from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Unavailable
from collidium.inference import availability
from collidium.model_runs import model_files, model_queue, model_runners
from collidium.model_runs.models import Evaluation, ModelRunner
from collidium.platform import Platform
from collidium.submissions import model_runner, reruns

from . import models


async def send(platform: Platform, number: int = 0) -> str:
    """Send a model without a record of a process that runs models."""
    return await models.send(platform, models.layers(number), recorded=False)


async def age(seconds: float) -> None:
    """Make the records older."""
    await ModelRunner.all().update(looked_at=now() - timedelta(seconds=seconds))


async def test_a_model_is_refused_where_nothing_runs_it(platform: Platform) -> None:
    with pytest.raises(Unavailable, match="tracking runs no models now: no process that runs them for 30 s"):
        await send(platform)
    await model_runners.record("models are not kept from: calls")
    with pytest.raises(Unavailable, match="models now: models are not kept from: calls"):
        await send(platform)
    assert not await Evaluation.exists()


async def test_a_damaged_model_is_replaced_when_it_is_sent_again(platform: Platform) -> None:
    """By its sender, whose model waits for the storage to return what was stored, and by others."""
    model = models.layers()
    await models.send(platform, model)
    key = model_files.model_key(hashlib.sha256(model).hexdigest())
    stored = platform.settings.data_dir / "storage" / key
    content = stored.read_bytes()
    for name in ("ada", "bob"):
        stored.write_bytes(content[:-1])
        await models.send(platform, model, of=name)
        assert stored.read_bytes() == content


async def test_models_of_baselines_are_refused_unless_they_may_wait(platform: Platform) -> None:
    """Seeding queues them for a server that starts later; over the API they are as all others."""
    await accounts.recognise("ada", signup_grant=Decimal(0))
    await Account.filter(hub_username="ada").update(baseline=True)
    with pytest.raises(Unavailable, match="tracking runs no models now"):
        await send(platform)
    await models.send(platform, models.layers(), recorded=False, may_wait=True)
    assert (await model_runners.waiting()).number == 1
    assert await model_runners.why_none() == "no process that runs them for 30 s"


async def test_a_record_counts_for_thirty_seconds(platform: Platform) -> None:
    """What waits stays, and the same model gets its first evaluation."""
    await model_runners.record("")
    await age(25)
    first = await send(platform)
    await age(31)
    with pytest.raises(Unavailable):
        await send(platform, 1)
    assert await send(platform) == first
    await ModelRunner.all().update(looked_at=now() + timedelta(days=1))
    with pytest.raises(Unavailable):
        await send(platform, 1)
    assert await Evaluation.all().values_list("state", flat=True) == ["received"]


async def test_a_restart_refuses_no_model(platform: Platform) -> None:
    async with model_runner.evaluating(platform):
        assert await model_runners.why_none() == ""
    assert await model_runners.number() == 1
    assert await send(platform)


async def test_packages_installed_later_run_what_waits(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that began without the packages accepts nothing, and runs models when they are there."""
    there = False
    monkeypatch.setattr(model_runner, "is_installed", lambda: there)
    monkeypatch.setattr(model_runners, "WRITE_SECONDS", 0.0)
    waiting = await models.send(platform, models.layers())
    async with model_runner.evaluating(platform):
        with pytest.raises(Unavailable, match="onnxruntime is not installed"):
            await send(platform, 1)
        assert (await model_queue.find(waiting)).state == "received"
        there = True
        model_queue.RECEIVED.notify()

        async def scored() -> bool:
            return (await model_queue.find(waiting)).state == "scored"

        await eventually_async(scored)
        assert await send(platform, 1)


async def test_a_machine_that_cannot_confine_accepts_none(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that is noticed only when a model is to be run."""
    strict = platform.settings.model_copy(update={"model_unconfined": False})
    object.__setattr__(platform, "settings", strict)
    monkeypatch.setattr(model_runner, "CONFINED_BY", ("network", "moods"))
    monkeypatch.setattr(availability, "confinement", lambda: ("calls", "files", "network"))
    async with model_runner.evaluating(platform):
        waiting = await send(platform)
        monkeypatch.setattr(availability, "confinement", lambda: ("network",))

        async def refused() -> bool:
            return await model_runners.why_none() == "models are not kept from: calls, files"

        await eventually_async(refused)
    row = await model_queue.find(waiting)
    assert (row.state, row.code) == ("checking", None)
    found = await model_runners.waiting()
    assert (found.number, found.oldest_at) == (1, row.checking_at)


async def test_reproductions_need_a_runner_too(platform: Platform) -> None:
    submission = (await model_queue.find(await models.scored(platform, models.layers()))).submission_id
    await truth_in_use.import_truth(
        platform,
        "tracking",
        str(EVENTS_DIRECTORY),
        config="ttbar_pu0",
        events=EventRange(0, 2),
        current=False,
        public=True,
    )
    account = await accounts.recognise("ada", signup_grant=0)
    await age(31)
    with pytest.raises(Unavailable, match="runs no models now"):
        await reruns.reproduce(platform, account, submission or "")
    await model_runners.record("")
    run = await reruns.reproduce(platform, account, submission or "")
    await age(31)
    assert await reruns.reproduce(platform, account, submission or "") == run


async def test_the_oldest_waiting_model_is_the_one_shown(platform: Platform) -> None:
    assert await model_runners.waiting() == model_runners.WaitingModels(0, None)
    ids = [await models.send(platform, models.layers(number)) for number in range(3)]
    moment = now().replace(microsecond=0)
    ago = [moment - timedelta(minutes=minutes) for minutes in (5, 9, 20)]
    for evaluation_id, since in zip(ids, ago, strict=True):
        await Evaluation.filter(id=evaluation_id).update(due_at=since)
    # One that a process works on does not wait.
    until = moment + timedelta(minutes=1)
    await Evaluation.filter(id=ids[2]).update(state="checking", checking_at=ago[2], lease="a", due_at=until)
    assert await model_runners.waiting() == model_runners.WaitingModels(2, ago[1])
    await Evaluation.filter(id=ids[2]).update(due_at=moment)
    assert await model_runners.waiting() == model_runners.WaitingModels(3, ago[2])
