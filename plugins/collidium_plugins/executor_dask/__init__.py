"""Executor ``dask``: runs calls on the workers of a Dask cluster, in processes with limits.

Dask cannot limit or end a running call, so each worker uses the executor ``processes``: a call that crashes,
hangs or exceeds its memory affects no other. Calls of a lost machine are repeated on another. Anyone with a
certificate of the cluster's authority can run code on all of its machines.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
import uuid
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from cachetools import TTLCache

from collidium.contracts.executor import Executor, StoredFile, WorkerKilled
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.errors import ConfigurationError, Unavailable
from collidium.files.held import scratch_directory
from collidium.hookspecs import hookimpl
from collidium.runtime.shared_calls import SharedCalls
from collidium_plugins.executor_processes import Answer, EncodedCall, EncodedCalls, Processes

if TYPE_CHECKING:
    from distributed import Client, Future, Security

    from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: Interval at which workers are listed while calls wait.
_INTERVAL_SECONDS: Final = 5.0
#: Cores that process the calls of a file, which each machine fetches: they read as fast as 10 Gbit/s.
_CORES: Final = 16


@hookimpl
def collidium_executors(settings: Settings) -> list[Executor]:
    """Raises ConfigurationError if the executor is chosen and its settings are incomplete."""
    if settings.executor == Dask.name and (problems := list(_problems(settings))):
        raise ConfigurationError("; ".join(problems))
    return [Dask(settings)] if settings.dask_scheduler else []


def _problems(settings: Settings) -> Iterator[str]:
    if find_spec("distributed") is None:
        yield "executor dask needs pip install 'collidium[dask]'"
    if not settings.dask_scheduler:
        yield "PLATFORM_DASK_SCHEDULER is not set, such as tls://dask.example.org:8786"
    if settings.dask_scheduler.startswith("tls://"):
        for name in ("ca", "certificate", "key"):
            path: Path | None = getattr(settings, f"dask_{name}")
            if path is None or not path.is_file():
                yield f"PLATFORM_DASK_{name.upper()} is no file, which {settings.dask_scheduler} needs"


class _LostMachines(Exception):
    """All workers that were chosen for a call are lost. Dask 2026.8 may never send it to new ones."""


class Dask(EncodedCalls):
    """Runs calls on the workers of ``PLATFORM_DASK_SCHEDULER``, and local ones in processes of this machine.

    Calls raise :class:`~collidium.errors.Unavailable` if the scheduler is unreachable, or there is no worker
    with the same release and plugins for ``PLATFORM_DASK_WAIT_SECONDS``.
    """

    name = "dask"
    is_remote = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._here = Processes(settings.scoring_workers)
        self._client: Client | None = None
        # One attempt to connect for all calls.
        self._connecting: SharedCalls[str, Client] = SharedCalls(finish=True)
        #: The cluster's workers, cached for some seconds.
        self._known: SharedCalls[str, dict[str, float]] = SharedCalls(TTLCache(1, _INTERVAL_SECONDS))

    @property
    def slots(self) -> int:
        # Empty if the client has lost its scheduler.
        threads = self._client.scheduler_info().get("total_threads", 0) if self._client else 0
        return max(threads, self._here.workers)

    async def run(self, call: EncodedCall, *, local: bool) -> Answer:
        if local:
            return await self._here.run(call, local=True)
        client = await self.connected()
        while True:
            with suppress(_LostMachines):
                return await self._sent(client, call)

    async def _sent(self, client: Client, call: EncodedCall) -> Answer:
        from collidium_plugins.executor_dask import worker

        key = f"collidium-{uuid.uuid4().hex}"
        chosen = await self._machines(client, call.files)
        future = client.submit(
            worker.run,
            key,
            call,
            key=key,
            pure=False,
            # Workers of other releases lack this resource, and so unpickle nothing.
            resources={same_code(): 1},
            workers=chosen or None,
            allow_other_workers=bool(chosen),
        )
        try:
            return await self._result(client, future, chosen)
        finally:
            if not future.done():
                await client.cancel([future], asynchronous=True, force=True)

    async def _machines(self, client: Client, files: Sequence[StoredFile]) -> list[str]:
        """Choose the workers that fetch the files of a call and run it, unless all of them are lost."""
        if not files:
            return []
        found = await self._known.run(client.id, lambda: _workers(client))
        # By the first file, the predictions, so that submissions are spread over the cluster.
        key, slots, chosen = files[0].key, 0.0, list[str]()
        for address in sorted(found, key=lambda address: _digest(f"{key} {address}")):
            if slots < _CORES:
                chosen.append(address)
                slots += found[address]
        return chosen

    async def serve(self, storage: Storage) -> None:
        """Run calls on this machine until cancelled. Raises Unavailable if the scheduler is unreachable."""
        async with scratch_directory(self._settings.data_dir / "dask") as directory:
            await self._serve(storage, directory)

    async def _serve(self, storage: Storage, directory: Path) -> None:
        from distributed import Worker

        from collidium_plugins.executor_dask.worker import StoredFiles, WorkerCalls

        address, security = self._cluster()
        files = StoredFiles(storage, directory / "files", self._settings.truth_cache_bytes)
        (directory / "files").mkdir()
        options: dict[str, Any] = {
            "name": self._settings.dask_worker_name or None,
            "nthreads": self._here.workers,
            "resources": {same_code(): self._here.workers},
            "security": security,
            # Calls have their own limits; Dask's would pause or end the worker.
            "memory_limit": 0,
            "plugins": (WorkerCalls(self._here, files),),
            "dashboard": False,
            "local_directory": str(directory),
        }
        try:
            async with Worker(address, **options) as worker:
                await worker.finished()
        except OSError as error:
            raise _unreachable(address) from error

    async def check(self) -> None:
        """Raise Unavailable if the scheduler is unreachable, or there is no worker with the same code."""
        if not await _workers(await self.connected()):
            raise _no_worker()

    async def close(self) -> None:
        await self._here.close()
        await self._connecting.close()
        if self._client is not None:
            await _close(self._client)
            self._client = None

    async def connected(self) -> Client:
        """Return a connected client, a new one if the scheduler was lost."""
        if self._client is not None and self._client.status == "running":
            return self._client
        return await self._connecting.run("", self._connect)

    async def _connect(self) -> Client:
        from distributed import Client

        if self._client is not None:
            await _close(self._client)
            self._client = None
        address, security = self._cluster()
        timeout = self._settings.dask_wait_seconds
        client = Client(address, asynchronous=True, security=security, set_as_default=False, timeout=timeout)
        try:
            self._client = await client
        except (OSError, TimeoutError) as error:
            await _close(client)
            raise _unreachable(address) from error
        return self._client

    async def _result(self, client: Client, future: Future[Any], chosen: Sequence[str]) -> Answer:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        result = asyncio.ensure_future(future)
        try:
            waited, pause = 0.0, min(_INTERVAL_SECONDS, self._settings.dask_wait_seconds)
            while not result.done():
                await asyncio.wait({result}, timeout=pause)
                with suppress(OSError):  # the scheduler is lost, and the future ends soon
                    found = await _workers(client)
                    waited = 0.0 if found else waited + pause
                    if found and chosen and found.keys().isdisjoint(chosen) and not result.done():
                        raise _LostMachines
                if waited >= self._settings.dask_wait_seconds and not result.done():
                    raise _no_worker()
            answer = cast("Answer", result.result())
        except FutureCancelledError as error:
            raise _unreachable(self._settings.dask_scheduler) from error
        except StorageUnavailable as error:
            raise Unavailable(
                f"a machine that scores cannot read the storage: {error}", retry_after=30
            ) from error
        except KilledWorker as error:
            raise WorkerKilled(f"machines were lost: {error}") from error
        finally:
            result.cancel()
        return answer

    def _cluster(self) -> tuple[str, Security | None]:
        """The address of the scheduler, and the encryption of connections."""
        from distributed import Security

        settings = self._settings
        if not settings.dask_scheduler.startswith("tls://"):
            return settings.dask_scheduler, None
        files = {"cert": str(settings.dask_certificate), "key": str(settings.dask_key)}
        own = {f"tls_{role}_{name}": file for role in ("client", "worker") for name, file in files.items()}
        return settings.dask_scheduler, Security(
            require_encryption=True, tls_ca_file=str(settings.dask_ca), **own
        )


async def _close(client: Client) -> None:
    try:
        await cast("Awaitable[None]", client.close())  # its type is that outside of an event loop
    except Exception:  # Dask may raise anything if the scheduler is lost meanwhile
        logger.warning("a Dask client failed to close", exc_info=True)


async def _workers(client: Client) -> dict[str, float]:
    """The workers with the same code: address -> number of concurrent calls."""
    scheduler: Any = client.scheduler  # an RPC proxy
    workers = (await scheduler.identity(n_workers=-1))["workers"]
    return {
        address: worker["resources"][same_code()]
        for address, worker in workers.items()
        if same_code() in worker["resources"]
    }


def _no_worker() -> Unavailable:
    return Unavailable("no worker with this release and these plugins is connected", retry_after=60)


def _unreachable(address: str) -> Unavailable:
    return Unavailable(f"the scheduler at {address} cannot be reached", retry_after=30)


@cache
def same_code() -> str:
    """The name of a resource that identifies the versions of Python, platform and plugins."""
    installed = {
        f"{point.dist.name} {point.dist.version}" for point in entry_points(group="collidium") if point.dist
    }
    parts = [f"{sys.version_info.major}.{sys.version_info.minor}", *sorted(installed)]
    return f"collidium-{_digest(repr(parts))[:16]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
