"""A job's output: what was ordered and nothing else, or refused with a reason; safe to repeat."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytest_asyncio
from tests.core.simulations.hostile import write_equal_ids, write_long_page
from tests.counts import LONG
from tests.killing import Killer
from tests.needs import Needs
from tests.waiting import until

from collidium.contracts.executor import Limits
from collidium.contracts.runner import Job, JobState, JobStatus, Runner, RunnerRefused, RunnerUnavailable
from collidium.contracts.storage import StorageUnavailable
from collidium.datasets.cards import DatasetFile
from collidium.datasets.output import PartFiles
from collidium.order import Order
from collidium.simulations.output import (
    Checks,
    InvalidOutput,
    OutputSource,
    WorkerLost,
    keep_parts,
    merge_parts,
    storage_key,
)
from collidium_plugins.executor_processes import Processes
from collidium_plugins.storage_local import LocalStorage

ORDER = Order("ttbar", events=6, pileup=0, seed=42)
REQUEST = "0f" * 16
MEBIBYTE = 1024**2

pytestmark = pytest.mark.asyncio(loop_scope="module")


class FolderRunner(Runner):
    """Its jobs have all completed, with the files of a folder as their output."""

    name = "folder"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fails: Exception | None = None

    async def submit(self, job: Job) -> str:
        return job.request_id

    async def find(self, request_id: str) -> str | None:
        return request_id

    async def poll(self, handle: str) -> JobStatus:
        return JobStatus(JobState.COMPLETED)

    async def cancel(self, handle: str) -> None: ...

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        copied = [Path(shutil.copy(path, directory)) for path in sorted(self.folder.iterdir())]
        if self.fails is not None:
            raise self.fails
        return copied

    async def close(self) -> None: ...


class Linking(FolderRunner):
    """Links its output instead of copying it."""

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        (file,) = self.folder.iterdir()
        (directory / file.name).hardlink_to(file)
        return [directory / file.name]


def table(events: Sequence[int | None], kind: pa.DataType | None = None) -> pa.Table:
    hits = pa.array([[float(n)] * 3 for n in range(len(events))], pa.list_(pa.float32()))
    return pa.table({"event_id": pa.array(events, kind or pa.uint32()), "x": hits})


def write(folder: Path, **tables: pa.Table) -> None:
    for name, content in tables.items():
        pq.write_table(content, folder / f"{name.replace('__', '-')}.parquet", row_group_size=2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def checks() -> AsyncIterator[Checks]:
    executor = Processes(1)
    yield Checks(executor, Limits(256 * MEBIBYTE, seconds=60), max_bytes=64 * MEBIBYTE)
    await executor.close()


def stored(storage: LocalStorage) -> dict[str, bytes]:
    files = (path for path in storage.directory.rglob("*") if path.is_file())
    return {path.relative_to(storage.directory).as_posix(): path.read_bytes() for path in files}


async def forget(part: int, files: PartFiles, *, stored: bool) -> None:
    """Nothing is to be remembered of parts."""


@dataclass(frozen=True)
class Finished:
    """A job that has completed, and where its output goes."""

    runner: FolderRunner
    storage: LocalStorage
    scratch: Path
    checks: Checks
    parts: int = 1

    @property
    def folder(self) -> Path:
        return self.runner.folder

    async def keep(self) -> list[DatasetFile]:
        source = OutputSource(self.runner, "handle", ORDER, REQUEST, self.parts)
        kept = await keep_parts(source, range(self.parts), self.storage, self.scratch, self.checks, forget)
        return merge_parts(list(kept.values()))

    async def refusal(self, **changes: Any) -> str:
        """Why its output is refused, with another runner or other checks."""
        with pytest.raises(InvalidOutput) as caught:
            await replace(self, **changes).keep()
        assert isinstance(caught.value, RunnerRefused)
        assert stored(self.storage) == {}
        assert not self.scratch.exists()
        assert str(self.scratch) not in str(caught.value), "the reason is for the user"
        return str(caught.value)


@pytest.fixture
def job(tmp_path: Path, checks: Checks) -> Finished:
    (tmp_path / "job").mkdir()
    storage, scratch = LocalStorage(tmp_path / "storage"), tmp_path / "outputs" / REQUEST
    return Finished(FolderRunner(tmp_path / "job"), storage, scratch, checks)


async def test_tables_are_named_as_hosted_datasets_are_and_described(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    # Shards of an array job: numbers decide their order, not their events.
    write(job.folder, tracker_hits__00000__of__00002=table([1, 3, 5]))
    write(job.folder, tracker_hits__00001__of__00002=table([0, 2, 4]))
    files = await job.keep()
    assert [(file.path, file.rows) for file in files] == [
        ("data/ttbar_pu0_particles/train-00000-of-00001.parquet", 6),
        ("data/ttbar_pu0_tracker_hits/train-00000-of-00002.parquet", 3),
        ("data/ttbar_pu0_tracker_hits/train-00001-of-00002.parquet", 3),
    ]
    contents = stored(job.storage)
    assert set(contents) == {storage_key(REQUEST, file.sha256) for file in files}
    for file in files:
        content = contents[storage_key(REQUEST, file.sha256)]
        assert (file.sha256, file.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert (
        contents[storage_key(REQUEST, files[1].sha256)]
        == (job.folder / "tracker_hits-00000-of-00002.parquet").read_bytes()
    )
    assert not job.scratch.exists()


async def test_what_was_linked_is_kept_without_a_copy(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    (file,) = await replace(job, runner=Linking(job.folder)).keep()
    stored_file = job.storage.directory / storage_key(REQUEST, file.sha256)
    assert stored_file.samefile(job.folder / "particles.parquet")


async def test_keeping_again_gives_the_same(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    first = await job.keep()
    before = stored(job.storage)
    (job.scratch / "0").mkdir(parents=True)
    (job.scratch / "0" / "particles.parquet").write_bytes(b"half a file of an attempt that was killed")
    (job.scratch / "0" / "tracks.parquet.part").write_bytes(b"another")
    assert await job.keep() == first
    assert stored(job.storage) == before
    assert not job.scratch.exists()


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (range(5), "holds 5 events, not the 6 that were ordered"),
        (range(7), "holds 7 events, not the 6 that were ordered"),
        ([0, 1, 2, 3, 3, 5], "event 3 occurs twice"),
        ([1, 2, 3, 4, 5, 6], "lacks 1 of the 6 events 0:6, for example 0"),
        ([5, 4, 3, 2, 1, 0], "not ascending"),
        ([], "holds 0 events"),
        ([0, 1, 2, None, 4, 5], "column event_id has nulls"),
    ],
)
async def test_every_event_that_was_ordered_is_there_once(
    job: Finished, events: Sequence[int | None], message: str
) -> None:
    write(job.folder, particles=table(range(6)), tracker_hits=table(list(events)))
    assert message in await job.refusal()


async def test_an_event_in_two_shards_is_refused(job: Finished) -> None:
    write(job.folder, tracks__0__of__2=table([0, 1, 2, 3]), tracks__1__of__2=table([3, 5]))
    assert "event 3 in tracks-0-of-2.parquet and tracks-1-of-2.parquet" in await job.refusal()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["tracks-0-of-2"], "lacks shards"),
        (["tracks-0-of-1", "tracks-1-of-2"], "lacks shards"),
        (["tracks", "tracks-0-of-1"], "has some twice"),
        (["tracks-1-of-2", "tracks-2-of-2"], "lacks shards"),
        (["Tracks"], "not a table of a dataset"),
        (["tracks\n"], "not a table of a dataset"),
    ],
)
async def test_shards_are_complete_and_named_as_promised(
    job: Finished, names: list[str], message: str
) -> None:
    for number, name in enumerate(names):
        events = range(number * 6 // len(names), (number + 1) * 6 // len(names))
        pq.write_table(table(events), job.folder / f"{name}.parquet")
    assert message in await job.refusal()


async def test_no_output_is_not_what_was_ordered(job: Finished) -> None:
    assert "without any output" in await job.refusal()


async def test_what_is_no_parquet_is_refused(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    whole = (job.folder / "particles.parquet").read_bytes()
    (job.folder / "particles.parquet").write_bytes(whole[:-20])
    assert "particles.parquet: cannot be read as parquet" in await job.refusal()


async def test_a_table_needs_event_ids(job: Finished) -> None:
    write(job.folder, particles=table(range(6)).drop_columns("event_id"))
    assert "no column event_id" in await job.refusal()


async def test_shards_of_a_table_have_the_same_columns(job: Finished) -> None:
    write(job.folder, tracks__0__of__2=table([0, 1, 2]), tracks__1__of__2=table([3, 4, 5], pa.int64()))
    assert "tracks-1-of-2.parquet of the output has other columns" in await job.refusal()


async def test_files_outside_the_job_s_directory_are_never_taken(job: Finished, tmp_path: Path) -> None:
    write(tmp_path, particles=table(range(6)))

    class Symlinking(FolderRunner):
        async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
            (directory / "particles.parquet").symlink_to(tmp_path / "particles.parquet")
            return [directory / "particles.parquet"]

    class Pointing(FolderRunner):
        async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
            return [directory / ".." / ".." / ".." / "particles.parquet"]

    for kind in (Symlinking, Pointing):
        assert "was not written by the job" in await job.refusal(runner=kind(job.folder))


async def test_what_was_fetched_waits_for_the_next_attempt(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    job.runner.fails = RunnerUnavailable("the batch system does not answer")
    with pytest.raises(RunnerUnavailable):
        await job.keep()
    assert (job.scratch / "0" / "particles.parquet").exists()
    job.runner.fails = None
    (file,) = await job.keep()
    assert isinstance(file, DatasetFile)
    assert not job.scratch.exists()


async def test_a_full_disk_is_not_kept_full(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    job.runner.fails = RunnerUnavailable("the output cannot be written")
    job.runner.fails.__cause__ = OSError(errno.ENOSPC, "no space left on device")
    with pytest.raises(RunnerUnavailable):
        await job.keep()
    assert not job.scratch.exists()


async def test_one_process_collects_at_a_time(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    job.scratch.mkdir(parents=True)
    held = os.open(job.scratch, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(StorageUnavailable, match="another process"):
        await job.keep()
    assert job.scratch.exists(), "it is the other's"
    os.close(held)
    assert len(await job.keep()) == 1


# -- parts ---------------------------------------------------------------------------------------------------


class PartsRunner(FolderRunner):
    """Its job has two parts, the folders ``0`` and ``1``."""

    async def collect_part(self, handle: str, part: int, directory: Path, max_bytes: int) -> list[Path]:
        return [Path(shutil.copy(path, directory)) for path in sorted((self.folder / str(part)).iterdir())]


@pytest.fixture
def parts(job: Finished) -> Finished:
    for part in range(2):
        (job.folder / str(part)).mkdir()
        write(job.folder / str(part), particles=table(range(3 * part, 3 * part + 3)))
    return replace(job, runner=PartsRunner(job.folder), parts=2)


async def test_shards_of_parts_are_numbered_in_their_order(parts: Finished) -> None:
    (parts.folder / "0" / "particles.parquet").unlink()
    write(parts.folder / "0", particles__0__of__2=table([0, 2]), particles__1__of__2=table([1]))
    assert [(file.path[-28:], file.rows) for file in await parts.keep()] == [
        ("train-00000-of-00003.parquet", 2),
        ("train-00001-of-00003.parquet", 1),
        ("train-00002-of-00003.parquet", 3),
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"particles": table(range(3, 5))}, "holds 2 events, not the 3 that were ordered"),
        ({"particles": table(range(2, 5))}, "lacks 1 of the 3 events 3:6, for example 5"),
        ({"particles": table(range(3, 6), pa.int64())}, "part 1 of the output has other tables or columns"),
        ({"tracks": table(range(3, 6))}, "part 1 of the output has other tables or columns than part 0"),
    ],
)
async def test_parts_have_their_events_and_the_same_tables(
    parts: Finished, second: dict[str, pa.Table], message: str
) -> None:
    (parts.folder / "1" / "particles.parquet").unlink()
    write(parts.folder / "1", **second)
    with pytest.raises(InvalidOutput, match=message):
        await parts.keep()
    assert not parts.scratch.exists()


async def test_parts_together_have_the_bytes_of_an_output(parts: Finished) -> None:
    size = (parts.folder / "0" / "particles.parquet").stat().st_size
    with pytest.raises(InvalidOutput, match=r"bytes; \d+ are allowed"):
        await replace(parts, checks=replace(parts.checks, max_bytes=int(1.5 * size))).keep()


# -- killed workers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("_", range(20 if LONG else 1))
async def test_one_killed_worker_keeps_an_output(job: Finished, _: int) -> None:
    write(job.folder, particles=table(range(6)))
    with Killer(os.getpid()) as killer:
        assert len(await job.keep()) == 1
        await until(lambda: len(killer.killed) == 1)


async def test_output_whose_workers_are_killed_is_checked_later(job: Finished) -> None:
    """Neither the output nor its order is at fault: the attempt is not one of a lost worker."""
    write(job.folder, particles=table(range(6)))
    with Killer(os.getpid(), inf), pytest.raises(RunnerUnavailable, match="interrupted") as caught:
        await job.keep()
    assert not isinstance(caught.value, WorkerLost)
    assert len(await job.keep()) == 1


# -- hostile output -----------------------------------------------------------------------------------------


def memory(kind: str) -> int:
    """A line of this process's memory: VmRSS is now, VmHWM the most since it was reset."""
    found = re.search(rf"{kind}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.parametrize("write_file", [write_equal_ids, write_long_page])
async def test_a_bomb_leaves_the_servers_memory_alone(
    needs: Needs, job: Finished, write_file: Callable[[Path], None]
) -> None:
    needs("peak memory")
    write_file(job.folder / "particles.parquet")
    assert (job.folder / "particles.parquet").stat().st_size < MEBIBYTE
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    with pytest.raises((InvalidOutput, WorkerLost), match=r"not the 6|more than its \d+ bytes of memory"):
        await job.keep()
    assert memory("VmHWM") - before < 64 * MEBIBYTE
    assert stored(job.storage) == {}


async def test_an_output_with_holes_is_refused(job: Finished) -> None:
    write(job.folder, particles=table(range(6)))
    os.truncate(job.folder / "particles.parquet", 2 * 1024**3)
    for limits in (job.checks, replace(job.checks, max_bytes=2**40)):
        assert "has holes" in await job.refusal(runner=Linking(job.folder), checks=limits)


async def test_an_output_of_too_many_files_is_refused(job: Finished) -> None:
    class Countless(FolderRunner):
        async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
            return [directory / f"particles-{number}-of-20001.parquet" for number in range(20_001)]

    assert "20000 are allowed" in await job.refusal(runner=Countless(job.folder))
