"""The conformance checks pass good implementations and report each broken promise."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.identity import Identity, IdentityProvider, IdentityUnavailable
from collidium.contracts.runner import Job, JobState, JobStatus, Runner, RunnerError, RunnerRefused
from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable, check_key
from collidium.testing.conformance import (
    Nonconforming,
    check_identity_provider,
    check_runner,
    check_storage,
)

# -- storage -------------------------------------------------------------------------------------------


class Folder(Storage):
    """A small storage that keeps its contract."""

    name = "folder"

    def __init__(self, root: Path) -> None:
        self.root = root

    async def put(self, key: str, path: Path) -> None:
        target = self.root / check_key(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)

    async def get(self, key: str, path: Path) -> None:
        if not await self.exists(key):
            raise MissingFile(key)
        shutil.copyfile(self.root / check_key(key), path)

    async def exists(self, key: str) -> bool:
        return (self.root / check_key(key)).is_file()

    async def delete(self, key: str) -> None:
        (self.root / check_key(key)).unlink(missing_ok=True)

    async def close(self) -> None:
        pass


class AwayFolder(Folder):
    async def put(self, key: str, path: Path) -> None:
        raise StorageUnavailable("not mounted")

    async def get(self, key: str, path: Path) -> None:
        raise StorageUnavailable("not mounted")


class LinkingFolder(Folder):
    async def put(self, key: str, path: Path) -> None:
        target = self.root / check_key(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(path)


class TrustingFolder(Folder):
    async def put(self, key: str, path: Path) -> None:
        shutil.copyfile(path, self.root / "anything")
        await super().put("conformance/anything" if key.startswith(("/", ".")) else key, path)


class TouchingFolder(Folder):
    async def get(self, key: str, path: Path) -> None:
        path.touch()
        await super().get(key, path)


class TearingFolder(Folder):
    async def put(self, key: str, path: Path) -> None:
        target = self.root / check_key(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        half = len(content) // 2
        target.write_bytes(content[:half])
        await asyncio.sleep(0)
        with target.open("ab") as file:
            file.write(content[half:])


async def test_a_good_storage_passes(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "scratch").mkdir()
    away = AwayFolder(tmp_path / "away")
    await check_storage(Folder(root), tmp_path / "scratch", unreachable=away)
    with pytest.raises(Nonconforming, match="while the backend is down"):
        await check_storage(Folder(root), tmp_path / "scratch", unreachable=Folder(tmp_path / "here"))
    assert [path for path in root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LinkingFolder, "must return the content of the last put|must not depend on the source"),
        (TrustingFolder, "must raise ValueError"),
        (TouchingFolder, "must leave no file behind"),
        (TearingFolder, "a mixture"),
    ],
)
async def test_a_broken_promise_of_a_storage_is_reported(
    broken: Callable[[Path], Storage], message: str, tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "root").mkdir()
    with pytest.raises(Nonconforming, match=message):
        await check_storage(broken(tmp_path / "root"), tmp_path / "scratch")


# -- identity ------------------------------------------------------------------------------------------


class OneUser(IdentityProvider):
    """Knows one token."""

    name = "one_user"

    def __init__(self, token: str = "secret", *, down: bool = False) -> None:
        self.token = token
        self.down = down

    async def identify(self, token: str) -> Identity | None:
        if self.down:
            raise IdentityUnavailable("down")
        return Identity("anna") if token == self.token else None

    async def close(self) -> None:
        pass


class Prefix(OneUser):
    async def identify(self, token: str) -> Identity | None:
        return Identity("anna") if token.startswith(self.token) else None


class Strict(OneUser):
    async def identify(self, token: str) -> Identity | None:
        token.encode("ascii")
        return await super().identify(token)


class Refusing(OneUser):
    async def identify(self, token: str) -> Identity | None:
        return None


async def test_a_good_identity_provider_passes() -> None:
    await check_identity_provider(OneUser(), "secret", "anna", unreachable=OneUser(down=True))


@pytest.mark.parametrize(
    ("provider", "unreachable", "message"),
    [
        (Prefix(), None, "must give None"),
        (Strict(), None, "but raises UnicodeEncodeError"),
        (Refusing(), None, "must give its owner"),
        (OneUser(), Refusing(), "must raise IdentityUnavailable"),
    ],
)
async def test_a_broken_promise_of_an_identity_provider_is_reported(
    provider: IdentityProvider, unreachable: IdentityProvider | None, message: str
) -> None:
    with pytest.raises(Nonconforming, match=message):
        await check_identity_provider(provider, "secret", "anna", unreachable=unreachable)


# -- runner --------------------------------------------------------------------------------------------


class Countdown(Runner):
    """Takes each job through its states, one at each poll, and writes a line as output."""

    name = "countdown"
    path = (JobState.QUEUED, JobState.UNKNOWN, JobState.RUNNING, JobState.COMPLETED)

    def __init__(self, machine: Countdown | None = None) -> None:
        """Jobs are those of ``machine``, where it is given."""
        self.polled: dict[str, int] = machine.polled if machine else {}
        self.stopped: set[str] = machine.stopped if machine else set()

    async def submit(self, job: Job) -> str:
        self.polled.setdefault(job.request_id, 0)
        return job.request_id

    async def find(self, request_id: str) -> str | None:
        return next((handle for handle in self.polled if handle.startswith(request_id)), None)

    async def poll(self, handle: str) -> JobStatus:
        if handle not in self.polled:
            raise RunnerRefused(handle)
        if handle in self.stopped:
            return JobStatus(JobState.CANCELLED)
        step = min(self.polled[handle], len(self.path) - 1)
        self.polled[handle] = step + 1
        return JobStatus(self.path[step], Decimal("0.001"))

    async def cancel(self, handle: str) -> None:
        if self.polled.get(handle, len(self.path)) < len(self.path):
            self.stopped.add(handle)

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        if handle not in self.polled:
            raise RunnerRefused(handle)
        if max_bytes < 100:
            raise RunnerRefused("too large")
        file = directory / "particles.parquet"
        pq.write_table(pa.table({"event_id": [0], "particle_id": [[1]]}), file)
        return [file]

    async def close(self) -> None:
        pass


class TwoJobs(Countdown):
    async def submit(self, job: Job) -> str:
        handle = f"{job.request_id}-{len(self.polled)}"
        self.polled[handle] = 0
        return handle


class Searching(Countdown):
    async def find(self, request_id: str) -> str | None:
        return None


class Hasty(Countdown):
    async def find(self, request_id: str) -> str | None:
        return request_id


class Summary(Countdown):
    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
        return {handle: JobStatus(JobState.UNKNOWN) for handle in handles}


class Pretending(Countdown):
    is_mock = True


class Backwards(Countdown):
    path = (JobState.RUNNING, JobState.QUEUED, JobState.COMPLETED)


class Forgetful(Countdown):
    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        return [directory / "not-written"]


class Overeager(Countdown):
    async def cancel(self, handle: str) -> None:
        self.stopped.add(handle)


class Polite(Countdown):
    async def poll(self, handle: str) -> JobStatus:
        return await super().poll(handle) if handle in self.polled else JobStatus(JobState.FAILED)


class Blunt(Countdown):
    async def cancel(self, handle: str) -> None:
        if self.polled[handle] < len(self.path):
            self.stopped.add(handle)


class Scribe(Countdown):
    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        file = directory / "particles.parquet"
        file.write_text("one event\n")
        return [file]


class Boundless(Countdown):
    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        return await super().collect(handle, directory, 2**30)


class Nameless(Countdown):
    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        files = await super().collect(handle, directory, max_bytes)
        pq.write_table(pa.table({"particle_id": [[1]]}), files[0])
        return files


async def test_a_good_runner_passes(tmp_path: Path) -> None:
    runner = Countdown()
    await check_runner(runner, tmp_path, another=lambda: Countdown(runner), interval=0)


async def test_a_handle_must_be_valid_in_every_instance(tmp_path: Path) -> None:
    with pytest.raises(Nonconforming, match="in every instance"):
        await check_runner(Countdown(), tmp_path, another=Countdown, interval=0)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (TwoJobs, "must give one job"),
        (Searching, "find must give the handle"),
        (Hasty, "find of a request never submitted must give None"),
        (Summary, "poll_many must return the same as poll"),
        (Pretending, "a mock must have no output"),
        (Backwards, "must not go back"),
        (Forgetful, "must write below"),
        (Overeager, "must not change a completed job"),
        (Polite, "poll of an unknown handle must raise RunnerRefused"),
        (Blunt, "cancel of an unknown handle must do nothing"),
        (Scribe, "must be a parquet table"),
        (Nameless, "must be a parquet table"),
        (Boundless, "more than max_bytes must raise RunnerRefused"),
    ],
)
async def test_a_broken_promise_of_a_runner_is_reported(
    broken: Callable[[], Runner], message: str, tmp_path: Path
) -> None:
    with pytest.raises(Nonconforming, match=message):
        await check_runner(broken(), tmp_path, interval=0)
