"""What was written down of one job is damaged: that is no matter of the others."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest
from tests.runners.following import reaches, runs
from tests.runners.spool.conftest import MakeRunner, Order, RecordOf, Release

from collidium import order as orders
from collidium.contracts.runner import Job, JobState, RunnerUnavailable
from collidium_runners.spool.spool import Spool


@pytest.fixture(scope="module")
def kind() -> str:
    return "local"


Damage = pytest.mark.parametrize("damage", ["", "[]", "{}", "null", "\x00", "[" * 100_000])


@Damage
async def test_a_damaged_entry_does_not_stop_other_jobs(
    make_runner: MakeRunner, order: Order, release: Release, jobs: Path, damage: str
) -> None:
    runner = make_runner(local_jobs=2)
    broken, other = [await runner.submit(order("gated")) for _ in range(2)]
    await runs(runner, other)
    (jobs / "started" / f"{broken}.json").write_text(damage)
    release(other)
    await reaches(runner, other, {JobState.COMPLETED})
    with pytest.raises(RunnerUnavailable, match="damaged"):
        await runner.poll(broken)
    release(broken)


@Damage
async def test_a_damaged_record_is_the_end_of_its_job_alone(
    make_runner: MakeRunner,
    order: Order,
    release: Release,
    record: RecordOf,
    damage: str,
) -> None:
    runner = make_runner(local_jobs=2)
    broken, other = [await runner.submit(order("gated")) for _ in range(2)]
    await runs(runner, broken)
    (record(broken).folder / "started.json").write_text(damage)
    assert (await reaches(runner, broken, {JobState.FAILED})).reason
    release(other)
    await reaches(runner, other, {JobState.COMPLETED})


@pytest.mark.parametrize("where", ["entry", "record", "log"])
async def test_a_pipe_stops_no_other_job(
    make_runner: MakeRunner, order: Order, release: Release, record: RecordOf, jobs: Path, where: str
) -> None:
    """Jobs run under the server's account, so they can put a pipe in place of any file here."""
    runner = make_runner(local_jobs=2)
    broken, other = [await runner.submit(order("gated")) for _ in range(2)]
    await runs(runner, broken)
    await runs(runner, other)
    folder = record(broken).folder
    file = {"entry": jobs / "started" / f"{broken}.json", "record": folder / "started.json"}.get(
        where, folder / "log.1"
    )
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    release(other)
    await reaches(runner, other, {JobState.COMPLETED})
    if where == "record":  # what runs without a record is ended
        assert (await reaches(runner, broken, {JobState.FAILED})).reason
        return
    release(broken)
    if where == "log":
        await reaches(runner, broken, {JobState.COMPLETED})
    else:
        with pytest.raises(RunnerUnavailable, match="damaged"):
            await runner.poll(broken)


async def test_a_job_of_an_earlier_release_is_read(jobs: Path) -> None:
    """Its record has the fields of the order among those of the job."""
    entry = {
        "job": {
            "request_id": "r1",
            "channel": "ttbar",
            "events": 10,
            "pileup": 40,
            "seed": 2**128 - 1,
            "node_seconds": 60.0,
            "vary": "field=0.99",
        },
        "engine": "local",
        "submitted_at": 1.5,
        "status": {"state": "completed", "node_hours": "0.25", "reason": None, "parts_completed": 0},
    }
    spool = Spool(jobs)
    with spool.locked():
        (jobs / "ended" / "r1.json").write_text(json.dumps(entry))
    found = spool.find("r1")
    assert found is not None
    assert found.status is not None
    assert found.job == Job("r1", orders.Order("ttbar", 10, 40, 2**128 - 1, "field=0.99"), 60.0)
    assert found.status.node_hours == Decimal("0.25")
