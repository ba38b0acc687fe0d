"""Faults of runners, hubs, databases and whole servers: requests end all the same, and are paid once."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Self

import httpx
import pytest
from msgspec import structs
from tests.core.simulations import life
from tests.core.simulations.conftest import (
    DELIVERY,
    GRANT,
    ORDER,
    OpenPlatform,
    assert_sound,
    balance,
    ended,
    followed,
    order,
    reached,
    sign_up,
)
from tests.core.simulations.filed import Filed
from tests.core.simulations.scripted import Answer, Scripted
from tests.hub import HubServer, own_hub
from tests.waiting import eventually, eventually_async, until
from tortoise.timezone import now

from collidium import operations, simulations
from collidium.accounts.ledger import LARGEST
from collidium.contracts.runner import Job, JobState, JobStatus, RunnerRefused, RunnerUnavailable
from collidium.simulations import Order
from collidium.simulations.models import SimulationRequest
from collidium.simulations.output import storage_key
from collidium.simulations.publication import repository_name
from collidium.testing.databases import PostgresDatabases
from collidium.testing.plugin import StartServer
from collidium.testing.postgres import PostgresServer
from collidium.testing.server import ServerProcess

__all__ = ["own_hub"]

RUNNING = JobStatus(JobState.RUNNING, Decimal("0.001"))


# -- jobs that nothing would stop ----------------------------------------------------------------------------


class Slow(Scripted):
    """Hands the first job over only when the test lets it."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(*answers)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def submit(self, job: Job) -> str:
        self.asked.set()
        await self.go.wait()
        return await super().submit(job)


async def expire_leases() -> None:
    await SimulationRequest.exclude(lease="").update(leased_until=now())


async def test_a_job_submitted_after_its_request_ended_is_stopped(
    open_platform: OpenPlatform,
) -> None:
    runner = Slow(RUNNING)
    async with open_platform(runner, lease_seconds=3600) as platform:
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        async with simulations.following(platform):
            await runner.asked.wait()
            await expire_leases()
            await simulations.cancel(platform, request_id, alice)
            async with simulations.following(platform):
                assert (await ended(request_id)).credits_refunded == Decimal("0.003")
            runner.go.set()
            await until(lambda: runner.cancelled == {request_id})
        await assert_sound()


async def test_a_job_submitted_while_its_request_ended_is_stopped(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    class Blinking(Slow):
        """Is asked for a job, looks, and answers when the job has been handed over by another process."""

        async def find(self, request_id: str) -> str | None:
            found = await super().find(request_id)
            self.go.set()
            await until(lambda: "another process works on it" in caplog.text)
            return found

    runner = Blinking()
    caplog.set_level(logging.INFO)
    async with open_platform(runner, lease_seconds=3600) as platform:
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        async with simulations.following(platform):
            await runner.asked.wait()
            await expire_leases()
            await simulations.cancel(platform, request_id, alice)
            async with simulations.following(platform):
                assert (await ended(request_id)).state == "cancelled"
                await until(lambda: runner.cancelled == {request_id})
        await assert_sound()


async def test_a_job_accepted_before_a_final_rejection_is_stopped(
    open_platform: OpenPlatform,
) -> None:
    class Forgetful(Scripted):
        async def submit(self, job: Job) -> str:
            if job.request_id in self.jobs:
                raise RunnerRefused("the project has no hours left")
            await super().submit(job)
            raise RunnerUnavailable("the answer got lost")

    runner = Forgetful()
    async with open_platform(runner) as platform, simulations.following(platform):
        request = await ended(await order(platform, await sign_up("alice")))
        assert (request.state, request.reason) == ("failed", "the project has no hours left")
        await until(lambda: runner.cancelled == {request.request_id})


async def test_no_job_is_stopped_for_another_request(open_platform: OpenPlatform) -> None:
    class Confused(Scripted):
        async def submit(self, job: Job) -> str:
            await super().submit(job)
            return "4711"

        async def find(self, request_id: str) -> str | None:
            return "4711"

    runner = Confused(RUNNING)
    runner.jobs["4711"] = Job("4711", Order("ttbar", 1, 0, 1), 1)
    async with open_platform(runner) as platform, simulations.following(platform):
        alice = await sign_up("alice")
        first = await order(platform, alice)
        await reached(first, "running")
        second = await order(platform, alice, structs.replace(ORDER, seed=7))
        await simulations.cancel(platform, second, alice)
        assert (await ended(second)).state == "cancelled"
        assert runner.cancelled == set()


async def test_a_request_ends_although_its_job_cannot_be_stopped(
    open_platform: OpenPlatform,
) -> None:
    class Broken(Scripted):
        async def cancel(self, handle: str) -> None:
            raise ValueError("<html>")

    runner = Broken(RUNNING)
    async with open_platform(runner, running_deadline_seconds=0.2) as platform:
        async with simulations.following(platform):
            assert (await ended(await order(platform, await sign_up("alice")))).state == "failed"
        assert await balance("alice") == GRANT


# -- money ---------------------------------------------------------------------------------------------------


async def test_a_refund_may_exceed_the_largest_balance(open_platform: OpenPlatform) -> None:
    runner = Scripted(JobStatus(JobState.FAILED, reason="it broke"))
    async with open_platform(runner) as platform:
        request_id = await order(platform, await sign_up("alice"))
        rest = LARGEST - await balance("alice")
        await operations.grant("alice", rest, "generous", actor="test", http_request_id="test")
        async with simulations.following(platform):
            assert (await ended(request_id)).state == "failed"
        assert await balance("alice") == LARGEST + Decimal("0.003")
        await assert_sound()


async def test_a_ban_keeps_neither_paid_events_nor_refunds_back(
    open_platform: OpenPlatform,
) -> None:
    runner = Scripted(RUNNING, JobStatus(JobState.FAILED, reason="it broke"))
    async with open_platform(runner) as platform:
        request_id = await order(platform, await sign_up("alice"))
        await operations.ban("alice", True, actor="test", http_request_id="test")
        async with simulations.following(platform):
            assert (await ended(request_id)).credits_refunded == Decimal("0.003")
        assert await balance("alice") == GRANT


async def test_a_completion_and_a_cancellation_at_once_agree(open_platform: OpenPlatform) -> None:
    runner = Scripted()
    async with open_platform(runner, publish_deadline_seconds=0.05) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, structs.replace(ORDER, seed=seed)) for seed in range(8)]
        async with simulations.following(platform):
            answers = await asyncio.gather(
                *(simulations.cancel(platform, request_id, alice) for request_id in ids),
                return_exceptions=True,
            )
            requests = [await ended(request_id) for request_id in ids]
        for request, answer in zip(requests, answers, strict=True):
            assert (request.state == "cancelled") == (not isinstance(answer, Exception))
        await assert_sound()


# -- the hub -------------------------------------------------------------------------------------------------


async def published(hub: HubServer) -> list[str]:
    return await asyncio.to_thread(lambda: [info.id for info in hub.api("ada").list_datasets(author="ada")])


async def until_put_off(request_id: str) -> None:
    """Wait until publishing has failed and is to be tried again."""

    async def put_off() -> bool:
        row = await SimulationRequest.get(request_id=request_id)
        return row.step == "publish" and row.attempts > 0

    await eventually_async(put_off)


@pytest.mark.parametrize("late", [False, True])
async def test_a_hub_that_was_down_gets_the_dataset_once(
    late: bool, open_platform: OpenPlatform, own_hub: HubServer
) -> None:
    options = replace(DELIVERY, token=own_hub.token("ada"))
    own_hub.end(signal.SIGKILL)
    async with open_platform(Scripted(), hub_url=own_hub.url) as platform:
        ada = await sign_up("ada")
        request_id = (await simulations.place(platform, ada, ORDER, options)).request_id
        async with simulations.following(platform):
            await until_put_off(request_id)
        own_hub.start()
        # Or the platform was down itself, for longer than the step may take: nothing is thrown away.
        moments = {"due_at": now()} | ({"deadline_at": now() - timedelta(days=1)} if late else {})
        await SimulationRequest.all().update(**moments)
        async with simulations.following(platform):
            request = await ended(request_id)
        assert (request.state, request.credits_refunded) == ("completed", 0)
        assert await published(own_hub) == [f"ada/{repository_name(ORDER, request.created_at.date())}"]
        await assert_sound()


async def test_a_hub_outage_is_refunded_and_the_output_is_kept(
    open_platform: OpenPlatform, own_hub: HubServer, tmp_path: Path
) -> None:
    options = replace(DELIVERY, token=own_hub.token("ada"))
    own_hub.end(signal.SIGKILL)
    async with open_platform(Scripted(), hub_url=own_hub.url) as platform:
        ada = await sign_up("ada")
        request_id = (await simulations.place(platform, ada, ORDER, options)).request_id
        async with simulations.following(platform):
            await until_put_off(request_id)
            await SimulationRequest.all().update(due_at=now(), deadline_at=now())
            request = await ended(request_id)
        assert (request.state, await balance("ada")) == ("failed", GRANT)
        assert "could not be published in time" in (request.reason or "")
        assert await simulations.output_of(request_id, ada.id) == (), "it was refunded"
        (file,) = await simulations.output_of(request_id, None)
        key = storage_key(request_id, file.sha256)
        await platform.storage.get(key, tmp_path / "fetched")
        assert (tmp_path / "fetched").stat().st_size == file.size_bytes
        assert (await SimulationRequest.get(request_id=request_id)).encrypted_token is None
        await assert_sound()
    own_hub.start()
    assert await published(own_hub) == []


async def test_output_that_cannot_be_collected_leaves_no_scratch(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    class Torn(Scripted):
        async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
            await super().collect(handle, directory, max_bytes)
            raise RunnerUnavailable("the connection broke")

    async with open_platform(Torn(), publish_deadline_seconds=0.2) as platform:
        request_id = await order(platform, await sign_up("alice"))
        async with simulations.following(platform):
            request = await ended(request_id)
        assert (request.state, request.credits_refunded) == ("failed", Decimal("0.003"))
        assert "the connection broke" in (request.reason or "")
    assert list((tmp_path / "data" / "outputs").iterdir()) == []


async def test_files_of_a_request_that_another_machine_ended_are_swept(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    async with open_platform() as platform:
        over = (await followed(platform)).request_id
        under_way = await order(platform, await sign_up("bob"), structs.replace(ORDER, seed=2))
        for name in (over, under_way, "something-else"):
            (tmp_path / "data" / "outputs" / name).mkdir()
        await simulations.sweep(platform)
    left = {path.name for path in (tmp_path / "data" / "outputs").iterdir()}
    assert left == {under_way, "something-else"}


# -- processes -----------------------------------------------------------------------------------------------


async def test_two_processes_that_follow_do_nothing_twice(
    migrated_database_url: str, own_hub: HubServer, tmp_path: Path
) -> None:
    jobs = Filed(tmp_path / "jobs")
    jobs.directory.mkdir()
    chosen = {"database_url": migrated_database_url, "data_dir": tmp_path / "data", "hub_url": own_hub.url}
    options = replace(DELIVERY, token=own_hub.token("grace"))
    with life.follower(jobs.directory, chosen), life.follower(jobs.directory, chosen):
        async with life.opened(jobs.directory, chosen) as platform:
            grace = await sign_up("grace")
            channels = ["single_muon", "zee"] * 5
            placed = [
                await simulations.place(platform, grace, Order(channel, 2, 0, seed), options)
                for seed, channel in enumerate(channels)
            ]
            requests = [await ended(one.request_id) for one in placed]
            assert [request.state for request in requests] == ["completed", "failed"] * 5
            for request in requests:
                states = [moment.state for moment in request.timeline]
                assert (states.count("running"), states.count(request.state)) in [(1, 1), (0, 1)]
            await assert_sound()
    api = own_hub.api("grace")
    for request in requests[::2]:
        repo = (request.output_hub_repo or "").partition("/datasets/")[2]
        commits = api.list_repo_commits(repo, repo_type="dataset")
        assert [commit.title for commit in commits].count(f"Simulation {request.request_id}") == 1
    assert len(list(api.list_datasets(author="grace"))) == 5


# -- servers -------------------------------------------------------------------------------------------------

QUICK = {
    "PLATFORM_MOCK_SECONDS": "0.3",
    "PLATFORM_BURST_REQUESTS": "1000",
    "PLATFORM_UNFINISHED_REQUESTS": "1000",
    "PLATFORM_LEASE_SECONDS": "1",
}


class Orders:
    """Clients that order without a pause, each order another one, until they are stopped."""

    def __init__(self, server: ServerProcess, clients: int = 2) -> None:
        self._token = server.add_user("carol")
        self._clients = clients
        self._seeds = count()
        self._stop = Event()
        #: When an order was sent, and what was answered; None: nothing.
        self.answers: list[tuple[float, httpx.Response | None]] = []
        self._server = server

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(self._clients)
        self._work = [self._threads.submit(self._order) for _ in range(self._clients)]
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Order no more, and wait for the answers that are due."""
        self._stop.set()
        self._threads.shutdown()
        for work in self._work:
            work.result()

    @property
    def accepted(self) -> list[str]:
        """The requests that were accepted."""
        return [
            str(a.json()["request_id"]) for _, a in self.answers if a is not None and a.status_code == 202
        ]

    @property
    def statuses(self) -> set[int]:
        """What was answered, of all kinds."""
        return {answer.status_code for _, answer in self.answers if answer is not None}

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx.Client(headers=headers, timeout=60, trust_env=False)

    def until_accepted(self, more: int) -> None:
        """Wait until that many more were accepted."""
        wanted = len(self.accepted) + more
        eventually(lambda: len(self.accepted) >= wanted)

    def _order(self) -> None:
        with self.client() as client:
            while not self._stop.is_set():
                order = {"channel": "single_muon", "events": 1, "pileup": 0, "seed": next(self._seeds)}
                sent = monotonic()
                try:
                    answer = client.post(f"{self._server.base_url}/v1/simulate", json=order)
                except httpx.TransportError:
                    self.answers.append((sent, None))
                    self._stop.wait(0.05)
                else:
                    self.answers.append((sent, answer))

    def all_end(self) -> bool:
        """Whether every request of the account has ended."""
        with self.client() as client:
            answers = [
                client.get(f"{self._server.base_url}/v1/requests", params={"state": state, "limit": 1})
                for state in ("queued", "running")
            ]
        return all(answer.is_success and answer.json() == [] for answer in answers)


def failures(server: ServerProcess) -> str:
    """What the server wrote down of answers with status 500, with tracebacks."""
    entries = re.split(r"(?m)^(?=\d{4}-)", server.log())
    return "\n".join(entry for entry in entries if "unexpected error" in entry)


def assert_audited(server: ServerProcess, orders: Orders) -> None:
    """Books and totals are right, and whatever was accepted has ended well."""
    audit = server.run("ledger", "audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    with orders.client() as client:
        for request_id in orders.accepted:
            request = client.get(f"{server.base_url}/v1/requests/{request_id}").json()
            assert request["state"] == "completed"


def test_a_server_that_is_killed_loses_nothing_it_accepted(start_server: StartServer) -> None:
    server = start_server(QUICK)
    with Orders(server) as orders:
        for _ in range(2):
            orders.until_accepted(15)
            server.kill()
            server.start()
        orders.until_accepted(5)
    eventually(orders.all_end)
    assert_audited(server, orders)


@pytest.mark.only_on("postgresql")
@pytest.mark.usefixtures("database_kind")
def test_a_postgresql_that_restarts_under_load_is_outlived(tmp_path: Path) -> None:
    with (
        PostgresServer() as postgres,
        PostgresDatabases(postgres).migrated() as url,
        ServerProcess(tmp_path, url, QUICK) as server,
    ):
        with Orders(server) as orders:
            pid = server.pid
            for _ in range(2):
                orders.until_accepted(15)
                postgres.stop()
                eventually(
                    lambda: any(a is not None and a.status_code == 503 for _, a in orders.answers[-8:])
                )
                postgres.start()
            orders.until_accepted(5)
        eventually(orders.all_end)
        assert server.pid == pid
        assert orders.statuses <= {202, 503}, failures(server)
        assert_audited(server, orders)
