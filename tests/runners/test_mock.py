"""What the mock runner decides by the clock."""

from __future__ import annotations

from pathlib import Path

from collidium.contracts.runner import Job, JobState
from collidium.order import Order
from collidium_runners.mock import MockRunner


async def test_cancelling_a_completed_job_changes_nothing(tmp_path: Path) -> None:
    """Also within the milliseconds by which the kernel's clock of files lags behind."""
    runner = MockRunner(tmp_path, seconds=0.003, outcome=JobState.COMPLETED)
    for number in range(40):
        handle = await runner.submit(Job(f"{number:032x}", Order("single_muon", 1, 0, 1), node_seconds=60))
        while (await runner.poll(handle)).state != JobState.COMPLETED:
            pass
        await runner.cancel(handle)
        assert (await runner.poll(handle)).state == JobState.COMPLETED
