"""Orders on the Superfacility API that users watch."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from tests.core.simulations.conftest import reached, sign_up
from tests.runners.sfapi.conftest import configured
from tests.runners.sfapi.superfacility import Superfacility
from tests.waiting import until

from collidium import simulations
from collidium.platform import Platform
from collidium.simulations import DeliveryOptions, Order, watch


async def test_watched_orders_are_polled_in_one_call(
    api: Superfacility, migrated_database_url: str, tmp_path: Path
) -> None:
    """Their jobs would be polled once an hour, and end while they are watched."""
    gate = tmp_path / "gate"
    command = shlex.join(["sh", "-c", f"until test -e {gate}; do sleep 0.02; done; exit 3"]) + " {output}"
    server = configured(
        api,
        data_dir=tmp_path / "data",
        database_url=migrated_database_url,
        pipeline_command=command,
        poll_seconds=3600,
        signup_grant=100,
    )

    async def watched(request_id: str) -> bytes:
        return [event async for event in await watch(platform, request_id, alice.id)][-1]

    def polls() -> list[int]:
        """How many jobs each poll so far was of."""
        accounting = [call.query for call in api.calls if call.query.get("sacct") == ["true"]]
        return [len(query["kwargs"][0].split(",")) for query in accounting if "jobid" in query["kwargs"][0]]

    async with Platform.open(server) as platform, simulations.following(platform):
        alice = await sign_up("alice")
        ids = []
        for seed in range(2):
            placed = await simulations.place(
                platform, alice, Order("ttbar", 1, 0, seed), DeliveryOptions(token=None)
            )
            ids.append(placed.request_id)
        for request_id in ids:
            await reached(request_id, "running")
        async with asyncio.TaskGroup() as group:
            before = len(polls())
            streams = [group.create_task(watched(request_id)) for request_id in ids]
            await until(lambda: polls()[before:].count(len(ids)) >= 2)
            gate.touch()
        assert all(b'"state":"failed"' in stream.result() for stream in streams)
