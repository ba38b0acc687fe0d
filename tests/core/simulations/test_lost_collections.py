"""Output that ends the processes which read it fails its request, and no other."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

import pytest
from tests.core.simulations import life
from tests.core.simulations.conftest import (
    GRANT,
    ORDER,
    OpenPlatform,
    assert_sound,
    balance,
    ended,
    order,
    sign_up,
)
from tests.core.simulations.filed import Filed
from tests.core.simulations.hostile import write_long_page
from tests.core.simulations.life import Life
from tests.core.simulations.scripted import Scripted
from tests.hub import HubServer, own_hub
from tortoise.timezone import now

from collidium import simulations
from collidium.simulations.models import HistoryLine, SimulationRequest

__all__ = ["own_hub"]

MEMORY = 256 * 1024**2


class Bomber(Scripted):
    """The output of the first ``bombs`` collections ends the worker that reads it."""

    def __init__(self, bomb: Path, bombs: int) -> None:
        super().__init__()
        self.bomb, self.bombs = bomb, bombs

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        self.calls["collect"] += 1
        (file,) = await super().collect(handle, directory, max_bytes)
        if self.calls["collect"] <= self.bombs:
            await asyncio.to_thread(shutil.copyfile, self.bomb, file)
        return [file]


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bomb") / "particles.parquet"
    write_long_page(path, ORDER.events)
    return path


async def test_two_lost_workers_fail_their_request(open_platform: OpenPlatform, bomb: Path) -> None:
    runner = Bomber(bomb, bombs=100)
    async with (
        open_platform(runner, scoring_memory_bytes=MEMORY) as platform,
        simulations.following(platform),
    ):
        request = await ended(await order(platform, await sign_up("alice")))
        assert (request.state, runner.calls["collect"]) == ("failed", 2)
        assert request.reason == (
            "reading the output ended 2 processes: "
            f"reading the output used more than its {MEMORY} bytes of memory"
        )
        assert await balance("alice") == GRANT
        await assert_sound()


async def test_a_request_survives_one_lost_worker(
    open_platform: OpenPlatform, own_hub: HubServer, bomb: Path
) -> None:
    runner = Bomber(bomb, bombs=1)
    async with (
        open_platform(runner, scoring_memory_bytes=MEMORY, hub_url=own_hub.url) as platform,
        simulations.following(platform),
    ):
        request_id = await order(platform, await sign_up("alice"))
        assert "the hub does not accept the token" in ((await ended(request_id)).reason or ""), (
            "it was published"
        )
        reasons = await HistoryLine.filter(request__request_id=request_id).values_list("reason", flat=True)
        assert any("more than its" in (reason or "") for reason in reasons)
        assert runner.calls["collect"] == 2


async def test_only_lost_workers_count(migrated_database_url: str, tmp_path: Path) -> None:
    """Neither a follower that dies nor a database that is away: workers read the output."""
    jobs = Filed(tmp_path / "jobs")
    jobs.directory.mkdir()
    chosen = {"database_url": migrated_database_url, "data_dir": tmp_path / "data"}
    async with life.opened(jobs.directory, chosen):
        for _ in range(2):
            codes = life.kill_each([Life("collect.fetched")], jobs.directory, chosen, "hf_none")
            assert codes == [-signal.SIGKILL]
            await SimulationRequest.exclude(lease="").update(leased_until=now())
            assert (await SimulationRequest.get()).lost_collections == 0
