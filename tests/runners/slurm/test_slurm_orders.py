"""Orders that are cut into parts: the same dataset and the same money, whatever the cut and who is killed."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from tests.core.simulations.conftest import GRANT, assert_sound, balance, ended, reached, sign_up
from tests.runners.slurm.cluster import SlurmCluster
from tests.waiting import eventually, eventually_async
from tortoise.timezone import now

from collidium import records, settings, simulations
from collidium.client import Client
from collidium.contracts.storage import StorageUnavailable
from collidium.platform import Platform
from collidium.runtime import failpoints
from collidium.simulations import DeliveryOptions, Order, settling
from collidium.simulations.follower import Lane, claim
from collidium.simulations.models import SimulationRequest, StoredPart
from collidium.simulations.output import storage_key
from collidium.testing.plugin import StartServer

OpenPlatform = Callable[..., AbstractAsyncContextManager[Platform]]

DELIVERY = DeliveryOptions(token=None)
#: An event costs a credit, far more than its part takes here.
CHANNELS = "fail=3600,fail_once=3600,gated=3600,gated_rest=3600,wrong_gated_rest=3600"


@pytest.fixture
def order_settings(slurm_cluster: SlurmCluster, job_settings: dict[str, object]) -> dict[str, object]:
    """A server that computes on the cluster."""
    return job_settings | {
        "run_mode": "real",
        "runner": "slurm",
        "slurm_configuration": slurm_cluster.environment["SLURM_CONF"],
        "channels": CHANNELS,
        "poll_seconds": 0.1,
        "lease_seconds": 1,
    }


@pytest.fixture
def open_platform(
    migrated_database_url: str, order_settings: dict[str, object], tmp_path: Path
) -> OpenPlatform:
    """Opens the platform; keywords are settings."""

    @asynccontextmanager
    async def opened(**overrides: object) -> AsyncIterator[Platform]:
        chosen = order_settings | {"data_dir": tmp_path / "data", "database_url": migrated_database_url}
        async with Platform.open(settings.load(**(chosen | overrides))) as platform:
            yield platform

    return opened


async def ordered(platform: Platform, channel: str, events: int = 7) -> str:
    placed = await simulations.place(platform, await sign_up("alice"), Order(channel, events, 0), DELIVERY)
    assert not placed.cached
    assert placed.credits_charged == events
    return placed.request_id


async def stored(platform: Platform, request_id: str) -> pa.Table:
    """The events that are kept of a request, from its shards in their order."""
    folder = platform.settings.data_dir / "storage"
    files = await simulations.output_of(request_id, None)
    return pa.concat_tables(pq.read_table(folder / storage_key(request_id, file.sha256)) for file in files)


def shards_in(data_dir: Path, request_id: str) -> list[Path]:
    """The files that the storage has of a request."""
    return list((data_dir / "storage" / "outputs" / request_id).rglob("*.parquet"))


async def reached_storage(platform: Platform, request_id: str) -> None:
    """Return once a part is stored, and noted as such."""

    async def is_stored() -> bool:
        return (await SimulationRequest.get(request_id=request_id)).parts_stored > 0

    await eventually_async(is_stored)
    assert len(shards_in(platform.settings.data_dir, request_id)) == 1


@pytest.mark.one_database
async def test_the_dataset_of_an_order_does_not_depend_on_its_cut(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    """Nor on a part that fails once."""
    tables, kept = [], Decimal(0)
    for number, per_part in enumerate((0, 3, 1)):
        (tmp_path / "gate.failed").unlink(missing_ok=True)
        # Another version, or the first dataset would answer the next order.
        async with (
            open_platform(slurm_events_per_part=per_part, pipeline_version=str(number)) as platform,
            simulations.following(platform),
        ):
            request = await ended(await ordered(platform, "fail_once"))
            assert request.state == "completed"
            assert len(await simulations.output_of(request.request_id, None)) == (1, 3, 7)[number]
            tables.append(await stored(platform, request.request_id))
            kept += cost(request)
            await assert_sound()
            assert await balance("alice") == GRANT - kept
    assert tables[0]["event_id"].to_pylist() == list(range(7))
    assert tables[0] == tables[1] == tables[2]


def cost(request: records.SimulationRequest) -> Decimal:
    """What its owner paid: what its parts used together."""
    paid = request.credits_charged - request.credits_refunded
    assert paid == min(request.node_hours, request.credits_charged)
    return paid


@pytest.mark.one_database
async def test_a_failing_part_fails_the_order_and_costs_nothing(
    open_platform: OpenPlatform,
) -> None:
    async with open_platform(slurm_events_per_part=1) as platform, simulations.following(platform):
        request = await ended(await ordered(platform, "fail"))
        assert (request.state, request.credits_refunded) == ("failed", request.credits_charged)
        assert request.reason == "1 of 7 parts failed; part 0: exit code 3"
        assert await balance("alice") == GRANT
        await assert_sound()


@pytest.mark.one_database
async def test_an_order_is_cancelled_with_all_its_parts(
    open_platform: OpenPlatform, slurm_cluster: SlurmCluster
) -> None:
    async with open_platform(slurm_events_per_part=1) as platform, simulations.following(platform):
        request_id = await ordered(platform, "gated")
        await reached(request_id, "running")
        await simulations.cancel(platform, request_id, await sign_up("alice"))
        request = await ended(request_id)
        assert request.state == "cancelled"
        name = f"--name=collidium-{request_id}"
        assert slurm_cluster.command("squeue", "--noheader", "--states=PD,R", name) == ""
        assert await balance("alice") == GRANT - cost(request)
        await assert_sound()


async def test_parts_are_stored_early_and_deleted_when_cancelled(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    """Without a second copy of any of them."""
    async with open_platform() as platform, simulations.following(platform):
        request_id = await ordered(platform, "gated_rest")
        await reached_storage(platform, request_id)
        (file,) = shards_in(tmp_path / "data", request_id)
        assert file.samefile(tmp_path / "data" / "slurm" / request_id / "0" / "particles.parquet")
        assert (await simulations.find(request_id)).state == "running"
        assert await simulations.output_of(request_id, None) == ()
        assert list(await simulations.stored_files()) == [f"outputs/{request_id}/{file.name}"]
        await simulations.cancel(platform, request_id, await sign_up("alice"))
        assert (await ended(request_id)).state == "cancelled"
        await eventually_async(nothing_is_noted)
        assert shards_in(tmp_path / "data", request_id) == []


async def nothing_is_noted() -> bool:
    return not await StoredPart.all().exists()


async def test_parts_that_cannot_be_swept_are_swept_later(
    open_platform: OpenPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_away(key: str) -> None:
        raise StorageUnavailable("the store is away")

    async with open_platform() as platform:
        async with simulations.following(platform):
            request_id = await ordered(platform, "gated_rest")
            await reached_storage(platform, request_id)
            with monkeypatch.context() as patched:
                patched.setattr(platform.storage, "delete", is_away)
                await simulations.cancel(platform, request_id, await sign_up("alice"))
                assert (await ended(request_id)).state == "cancelled"
        assert not await nothing_is_noted()
        await simulations.sweep(platform)
        assert await nothing_is_noted()
        assert shards_in(tmp_path / "data", request_id) == []


@pytest.mark.one_database
async def test_a_part_that_is_not_what_was_ordered_stops_the_others(
    open_platform: OpenPlatform, slurm_cluster: SlurmCluster
) -> None:
    async with open_platform() as platform, simulations.following(platform):
        request = await ended(request_id := await ordered(platform, "wrong_gated_rest"))
        assert (request.state, request.credits_refunded) == ("failed", request.credits_charged)
        assert "lacks 3 of the 3 events 0:3" in (request.reason or "")
        name = f"--name=collidium-{request_id}"
        assert slurm_cluster.command("squeue", "--noheader", "--states=PD,R", name) == ""
        await assert_sound()


@pytest.mark.one_database
async def test_a_part_whose_node_is_lost_is_simulated_again(
    open_platform: OpenPlatform, slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    """Slurm reports NODE_FAIL and puts it back; what ran on the lost node may go on next to the new one."""
    async with open_platform() as platform, simulations.following(platform):
        request_id = await ordered(platform, "gated_rest")
        await reached_storage(platform, request_id)
        slurm_cluster.lose_node()
        (tmp_path / "gate").touch()
        slurm_cluster.restore_node()
        row = await SimulationRequest.get(request_id=request_id)
        job_id = (row.handle or "").partition(".")[0]
        # Slurm lets two minutes pass before what was lost may start.
        slurm_cluster.command("scontrol", "update", f"jobid={job_id}_[1-2]", "starttime=now")
        request = await ended(request_id)
        assert request.state == "completed", request.reason
        assert (await stored(platform, request_id))["event_id"].to_pylist() == list(range(7))
        assert len(shards_in(tmp_path / "data", request_id)) == 3
        await assert_sound()


async def test_a_poll_costs_the_same_for_any_number_of_parts(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    counts = []
    for events in (1, 300):
        async with open_platform(slurm_events_per_part=1, channels="gated=1") as platform:
            placed = await simulations.place(
                platform, await sign_up("alice"), Order("gated", events, 0), DELIVERY
            )
            async with simulations.following(platform):
                await reached(placed.request_id, "running")
            await SimulationRequest.all().update(due_at=now())
            (row,) = await claim(Lane.POLL, 10, 60, "lease")
            assert (row.handle or "").split(".")[1] == str(events)
            with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
                caplog.clear()
                await settling.poll(platform, row.runner, [row])
                counts.append(len(caplog.records))
            await simulations.cancel(platform, placed.request_id, await sign_up("alice"))
            async with simulations.following(platform):
                await ended(placed.request_id)
    assert 0 < counts[0] == counts[1] <= 4


def test_kills_while_parts_run_or_are_stored_lose_nothing(
    start_server: StartServer, order_settings: dict[str, object], tmp_path: Path
) -> None:
    texts = {f"PLATFORM_{name.upper()}": str(value) for name, value in order_settings.items()}
    server = start_server(texts | {"PLATFORM_HUB_URL": "local"})
    token = server.add_user("ada")
    with Client(server.base_url, token) as ada:
        request_id = ada.simulate(channel="gated_rest", events=7, pileup=0, seed=42).request_id
        eventually(lambda: ada.request(request_id).state == "running")
    server.kill()
    # The first three while the first part is stored and the others run.
    for failpoint in ("collect.fetched", "collect.noted", "collect.file_stored", "collect.file_stored"):
        server.environment[failpoints.VARIABLE] = failpoint
        with suppress(RuntimeError):  # it may be killed before it is ready
            server.start()
        eventually(lambda: server._running().poll() is not None)
        assert len(shards_in(server.data_dir, request_id)) == (failpoint == "collect.file_stored")
    del server.environment[failpoints.VARIABLE]
    server.start()
    (tmp_path / "gate").touch()
    with Client(server.base_url, token) as ada:
        request = ada.wait(request_id, timeout=60)
    assert request.state == "completed"
    assert len(shards_in(server.data_dir, request_id)) == 3
    folder = server.data_dir / "slurm" / request_id
    assert len(list((folder / "log").iterdir())) == 3, "each part was simulated once"
    repo = (request.output_hub_repo or "").removeprefix(f"{server.base_url}/hub/datasets/")
    copy = HfApi(endpoint=f"{server.base_url}/hub", token=token).snapshot_download(
        repo, repo_type="dataset", local_dir=tmp_path / "copy"
    )
    shards = sorted(Path(copy).rglob("*.parquet"))
    written = [folder / str(part) / "particles.parquet" for part in range(3)]
    assert [shard.read_bytes() for shard in shards] == [shard.read_bytes() for shard in written]
