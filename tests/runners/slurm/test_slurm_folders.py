"""What a job leaves in its folder concerns that job alone, and is read in bounded time and memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from collidium import settings
from collidium.contracts.runner import JobState, JobStatus, RunnerUnavailable
from collidium.files import untrusted
from collidium_runners.slurm.backend import ReportedTask, SlurmBackend, SlurmSubmission
from collidium_runners.slurm.folder import RequestFolder
from collidium_runners.slurm.runner import SlurmRunner

DONE = json.dumps({"exit_code": 0, "began": 0, "ended": 3600})


class Reporting(SlurmBackend):
    """Slurm that has forgotten its jobs, except for what is given here; it submits none."""

    def __init__(self, queued: Collection[ReportedTask] = (), ended: Collection[ReportedTask] = ()) -> None:
        self.queued, self.ended = [*queued], [*ended]

    async def submit(self, submission: SlurmSubmission) -> int:
        raise NotImplementedError

    async def find_jobs(self, name: str) -> list[int]:
        return []

    async def tasks(self, job_ids: Collection[int]) -> list[ReportedTask]:
        return self.queued

    async def accounted(self, job_ids: Collection[int]) -> list[ReportedTask]:
        return self.ended

    async def cancel(self, job_id: int) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        pass


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The folder of two jobs of one part, which has ended well."""
    for number in (1, 2):
        folder = tmp_path / f"r{number}"
        (folder / "status").mkdir(parents=True)
        (folder / "0").mkdir()
        (folder / "status" / f"{number}_0").write_text(DONE)
        (folder / "parts").write_text("1")
        (folder / "job").write_text(str(number))
    return tmp_path


def runner(jobs: Path, backend: Reporting | None = None) -> SlurmRunner:
    command = "simulate {output}"
    return SlurmRunner(
        backend or Reporting(), settings.load(slurm_directory=jobs, pipeline_command=command, data_dir=jobs)
    )


async def states(jobs: Path, backend: Reporting | None = None) -> Mapping[str, object]:
    found = await runner(jobs, backend).poll_many(["1.1.r1", "2.1.r2"])
    return {
        handle: status.state if isinstance(status, JobStatus) else type(status)
        for handle, status in found.items()
    }


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        sparse,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_text("[" * 1_000_000),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text('{"exit_code": 0, "began": 0, "ended": Infinity}'),
        lambda path: path.write_text('{"exit_code": 0, "began": -1e300, "ended": 1e300}'),
        lambda path: path.write_text('{"exit_code": 1e300, "began": 0, "ended": 0}'),
    ],
    ids=["pipe", "sparse", "folder", "device", "nested", "binary", "infinite", "huge", "code"],
)
async def test_what_is_no_record_is_ignored(jobs: Path, make: Callable[[Path], object]) -> None:
    """Slurm does not know the part any more, and it left no record: it is lost, and the other is not."""
    record = jobs / "r1" / "status" / "1_0"
    record.unlink()
    make(record)
    assert await states(jobs) == {"1.1.r1": JobState.FAILED, "2.1.r2": JobState.COMPLETED}
    # The same in place of what the server wrote: an error of this request alone.
    for name in ("parts", "job"):
        (jobs / "r1" / name).unlink()
        make(jobs / "r1" / name)
    folder = RequestFolder(jobs / "r1", above_is_given=True)
    for call in (folder.parts, lambda: folder.claim_parts(1)):
        with suppress(RunnerUnavailable):
            assert call() is None
    assert await runner(jobs).find("r2") == "2.1.r2"


def test_numbers_that_a_job_can_write_are_bounded(jobs: Path) -> None:
    """A count of parts is what polling loops over; names of records may be anything."""
    folder = RequestFolder(jobs / "r1", above_is_given=True)
    (jobs / "r1" / "parts").write_text("9" * 18)
    assert folder.parts() is None
    with pytest.raises(RunnerUnavailable):
        folder.claim_parts(1)
    (jobs / "r1" / "job").unlink()
    for name in ("1x", "9" * 5000, "\u0661_0"):
        with suppress(OSError):
            (jobs / "r1" / "status" / name[:200]).touch()
    assert folder.job() == 1


async def test_folders_of_many_names_are_not_read_whole(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "names", lambda folder: _names(folder, 20))
    for number in range(100):
        (jobs / "r1" / "status" / f"1_{number + 1}").touch()
        (jobs / "r1" / f"more{number}").touch()
    assert await states(jobs) == dict.fromkeys(["1.1.r1", "2.1.r2"], JobState.COMPLETED)
    assert await runner(jobs).finished_parts("1.1.r1") == [True]
    assert await runner(jobs).finished_parts("1.2.r1") == [True, False]
    (jobs / "r1" / "job").unlink()
    with pytest.raises(RunnerUnavailable, match="too many files"):
        await runner(jobs).find("r1")
    assert await runner(jobs).find("r2") == "2.1.r2"


_names = untrusted.names


async def test_a_folder_that_fails_stops_no_other_job(jobs: Path) -> None:
    status = jobs / "r1" / "status"
    status.rename(jobs / "elsewhere")
    status.symlink_to(status)  # an error of the file system
    assert await states(jobs) == {"1.1.r1": RunnerUnavailable, "2.1.r2": JobState.COMPLETED}


@pytest.mark.parametrize("word", ["PREEMPTED", "NODE_FAIL"])
@pytest.mark.parametrize("queued", [True, False])
async def test_success_of_the_last_run_precedes_an_older_failure(jobs: Path, word: str, queued: bool) -> None:
    """Slurm may keep a state from before the task was put back into the queue."""
    reported = [ReportedTask(1, "collidium-r1", 0, (word,), 60)]
    backend = Reporting(queued=reported) if queued else Reporting(ended=reported)
    assert (await states(jobs, backend))["1.1.r1"] == JobState.COMPLETED
    # Neither without its output, nor without success.
    (jobs / "r1" / "0").rename(jobs / "moved")
    if queued:
        assert (await states(jobs, backend))["1.1.r1"] == JobState.FAILED
    (jobs / "moved").rename(jobs / "r1" / "0")
    (jobs / "r1" / "status" / "1_0").write_text(DONE.replace("0", "143", 1))
    assert (await states(jobs, backend))["1.1.r1"] == JobState.FAILED
    # A task that runs again has not ended.
    running = Reporting(queued=[ReportedTask(1, "collidium-r1", 0, ("RUNNING",), 60)])
    assert (await states(jobs, running))["1.1.r1"] == JobState.RUNNING
