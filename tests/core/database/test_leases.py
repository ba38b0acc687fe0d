"""Leases of rows, on a table that has them: only the holder of the latest lease changes a row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tortoise.timezone import now

from collidium.database import transactional
from collidium.database.leases import LeaseLost
from collidium.submissions.models import Rescoring
from collidium.submissions.rescoring import LEASES


@transactional
async def held(row: Rescoring) -> Rescoring:
    return await LEASES.held(row)


async def test_leases_are_of_one_process_until_they_expire(connected: str) -> None:
    moment = now()
    order = {"applies": False, "pays": False, "actor": "test", "http_request_id": "", "asked_at": moment}
    await Rescoring(challenge="tracking", leased_until=moment, **order).save(force_create=True)
    due = Rescoring.filter(leased_until__lte=moment)

    (slow,) = await LEASES.claim(due, timedelta(minutes=1))
    assert await LEASES.claim(due, timedelta(minutes=1)) == []
    await LEASES.renew(slow, moment, done=1)  # as if time had passed
    (other,) = await LEASES.claim(due, timedelta(minutes=1))
    assert (await held(other)).done == 1
    await LEASES.require(other)
    for change in (
        held(slow),
        LEASES.require(slow),
        LEASES.renew(slow, moment),
        LEASES.release(slow, moment),
    ):
        with pytest.raises(LeaseLost):
            await change

    await LEASES.release(other, moment)
    with pytest.raises(LeaseLost):
        await LEASES.change(other, done=2)  # it has released it
    (again,) = await LEASES.claim(due, timedelta(minutes=1))
    await Rescoring.all().update(ended_at=moment)
    with pytest.raises(LeaseLost):
        await held(again)
