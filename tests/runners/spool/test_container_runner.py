"""The container runner runs jobs in real containers, and reports how they ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.podman import Podman
from tests.runners.following import reaches, runs, unavailable
from tests.runners.spool.conftest import MakeRunner, Order

from collidium.contracts.runner import (
    JobState,
)


@pytest.fixture(scope="module")
def kind() -> str:
    return "container"


async def test_memory_is_limited(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner(container_memory_bytes=32 * 1024**2)
    status = await reaches(runner, await runner.submit(order("memory")))
    assert status.state == JobState.FAILED
    assert status.reason is not None
    assert "memory" in status.reason
    assert "it may use 0.0312 GiB" in status.reason


async def test_cancel_stops_the_container(
    make_runner: MakeRunner, order: Order, podman: Podman, tmp_path: Path
) -> None:
    runner, other = make_runner(), make_runner()
    handle = await runner.submit(order("gated"))
    await runs(runner, handle)
    await other.cancel(handle)
    assert podman.run("ps", "--quiet") == ""
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled: exit code 143 (SIGTERM)")
    assert not (tmp_path / "data" / "container-jobs" / "output" / handle).exists()


async def test_a_container_has_no_secret_no_network_and_no_rights(
    make_runner: MakeRunner, order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_TOKEN", "hunter2")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hunter2@localhost:1")
    runner = make_runner()
    handle = await runner.submit(order("environment_of_container"))
    await reaches(runner, handle)
    seen = tmp_path / "data" / "container-jobs" / "output" / handle / "0" / "seen"
    lines = seen.read_text().splitlines()
    assert "HOME=/tmp" in lines
    assert not [line for line in lines if "hunter2" in line]
    assert [line for line in lines if line in {"lo", "eth0", "tap0"}] == ["lo"]
    assert "CapEff:\t0000000000000000" in lines
    assert "NoNewPrivs:\t1" in lines
    assert "touch: /here: Read-only file system" in lines


async def test_an_image_that_is_not_there_is_named(make_runner: MakeRunner, order: Order) -> None:
    runner, job = make_runner(container_image="localhost/missing"), order()
    with unavailable("no pipeline to run", operators="podman pull localhost/missing"):
        await runner.submit(job)
    with unavailable("no pipeline to run", operators="PLATFORM_CONTAINER_IMAGE"):
        await make_runner(container_image="").submit(job)
    assert await runner.find(job.request_id) is None
