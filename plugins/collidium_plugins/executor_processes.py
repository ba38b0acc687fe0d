"""Executor ``processes``: runs calls in worker processes of this machine, with limits of memory and time.

A worker that hangs, runs out of memory or crashes affects only its own call: each worker has its own socket,
because a shared queue breaks when one of its readers is killed, and is replaced by a new one. Each has a
supervisor, which ends it with all processes that its calls have started (scoring_worker.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import re
import signal
import socket
import struct
import sys
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_type_hints

from msgspec import DecodeError, Meta, msgpack

from collidium.contracts.executor import (
    CallFailed,
    Executor,
    Item,
    Limits,
    Opaque,
    OverLimit,
    Result,
    StoredFile,
    WorkerCrashed,
    WorkerDied,
    WorkerKilled,
    WorkerNotStarted,
)
from collidium.hookspecs import hookimpl
from collidium.runtime.subprocesses import hide_memory

if TYPE_CHECKING:
    from collidium.settings import Settings

_SCRIPT: Final = Path(__file__).with_name("scoring_worker.py")
_LENGTH: Final = struct.Struct("<Q")
#: Time that a worker may take to start, or to import what a call needs.
_START_SECONDS: Final = 120.0
#: Time that a worker's processes may take to end before it is replaced.
_END_SECONDS: Final = 5.0
#: Exit status of a supervisor that ended a call over its memory limit; as in scoring_worker.py.
_OVER_MEMORY: Final = -signal.SIGUSR1
#: How long a call that runs alone keeps others from beginning.
_ALONE_SECONDS: Final = 20.0
#: Signals by which a process ends because of what it does itself.
_OWN_SIGNALS: Final = frozenset(
    {
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSEGV,
        signal.SIGSYS,
        signal.SIGTRAP,
    }
)
#: Maximum bytes of an answer, such as tallies or a displayed event.
_LARGEST_ANSWER: Final = 128 * 1024**2
#: Maximum bytes of an error, whose parts scoring_worker.py cuts, and maximum opaque parts of a result.
_LARGEST_ERROR: Final = 256 * 1024
_MAX_OPAQUE: Final = 1000
#: Maximum bytes of a value that is decoded. In the worst case this blocks the event loop for 0.2 s per MiB,
#: and a byte becomes 72 bytes of objects: an empty mapping in a list.
_LARGEST_VALUE: Final = 2 * 1024**2
#: Queued calls of a map per worker, which keep all workers busy.
_AHEAD: Final = 2

#: Errors of decoding untrusted data.
_UNDECODABLE: Final = (DecodeError, ValueError, LookupError, TypeError, RecursionError)
#: Environment variables of a worker: paths, language and time zone.
_KEPT: Final = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "TEMP",
        "TMP",
        "TMPDIR",
        "TZ",
        "USER",
    }
)

#: The outcome of a call: its kind, the encoded result or error, and the :class:`Opaque` parts.
Answer = tuple[str, bytes, Annotated[list[bytes], Meta(max_length=_MAX_OPAQUE)]]
#: An answer, and whether processes that the call started still run.
_Finished = tuple[str, bytes, Annotated[list[bytes], Meta(max_length=_MAX_OPAQUE)], bool]

logger = logging.getLogger(__name__)


@hookimpl
def collidium_executors(settings: Settings) -> list[Executor]:
    return [Processes(settings.scoring_workers)]


@dataclass(frozen=True, slots=True)
class EncodedCall:
    """A serialized call: function, item and memory limit, pickled with numbers instead of file paths."""

    pickled: bytes
    limits: Limits
    fresh: bool
    alone: bool = False
    files: tuple[StoredFile, ...] = ()


class EncodedCalls(Executor):
    """Base of executors that serialize calls. Answers are untrusted: they are decoded, never unpickled."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of calls that run concurrently."""

    async def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        limits: Limits,
        *,
        raises: tuple[type[Exception], ...] = (),
        fresh: bool = False,
        local: bool = False,
        alone: bool = False,
        files: Mapping[Path, StoredFile] | None = None,
    ) -> AsyncGenerator[Result, None]:
        elsewhere = files if files and self.is_remote and not local else {}
        paths = list(elsewhere)

        async def result_of(item: Item) -> Result:
            pickled = _pickled((function, item, limits.memory_bytes), paths)
            call = EncodedCall(pickled, limits, fresh, alone, tuple(elsewhere.values()))
            kind, value, opaque = await self.run(call, local=local)
            if kind == "memory":
                raise _over_memory(limits)
            if len(value) > _LARGEST_VALUE:
                raise OverLimit(f"returned {len(value)} bytes of data; {_LARGEST_VALUE} are allowed")
            if kind == "raised":
                raise _error(value, raises)
            return cast("Result", _result(function, value, opaque))

        calls: deque[asyncio.Task[Result]] = deque()
        try:
            for item in items:
                if len(calls) >= _AHEAD * self.slots:
                    yield await calls.popleft()
                calls.append(asyncio.create_task(result_of(item)))
            while calls:
                yield await calls.popleft()
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    @abstractmethod
    async def run(self, call: EncodedCall, *, local: bool) -> Answer:
        """Run a call. Raises OverLimit and WorkerDied."""


def _pickled(value: Any, paths: Sequence[Path]) -> bytes:
    """Pickle a value, with the index of each of the ``paths`` instead of the path."""
    if not paths:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    numbers = {path: number for number, path in enumerate(paths)}

    class Pickler(pickle.Pickler):
        def persistent_id(self, part: Any) -> int | None:
            return numbers.get(part) if isinstance(part, Path) else None

    file = BytesIO()
    Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


class Processes(EncodedCalls):
    """Runs calls in worker processes, which are started on demand and reused."""

    name = "processes"

    def __init__(self, workers: int = 0) -> None:
        """``workers`` is the maximum number of processes; 0 means one per core."""
        self.workers = workers or os.cpu_count() or 1
        # First come, first served: concurrent maps take turns, as each queues only a few calls.
        self._free = asyncio.Semaphore(self.workers)
        #: Held by a call that waits until no other runs, or runs alone.
        self._alone = asyncio.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    @property
    def slots(self) -> int:
        return self.workers

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*map(self._reap, self._all))

    async def run(self, call: EncodedCall, *, local: bool) -> Answer:
        return await self.run_with(call, ())

    async def run_with(self, call: EncodedCall, paths: Sequence[Path]) -> Answer:
        """Run a call whose files are at ``paths``. Raises OverLimit and WorkerDied."""
        data = pickle.dumps(([str(path) for path in paths], call.pickled), pickle.HIGHEST_PROTOCOL)
        async with self._alone_here() if call.alone else self._free:
            worker = await self._begin(data)
            try:
                *answer, has_children = await worker.finish(call.limits)
            except BaseException:
                # The call failed or was cancelled: the worker cannot be reused.
                await self._end(worker)
                raise
            if has_children or call.fresh or call.alone:
                await self._end(worker)  # also ends the children
            else:
                self._idle.append(worker)
        return cast("Answer", tuple(answer))

    @asynccontextmanager
    async def _alone_here(self) -> AsyncIterator[None]:
        """Wait until no call runs, end the idle workers, which keep memory, and let no call begin for a time.

        Others may begin again after :data:`_ALONE_SECONDS`, so that a hostile file cannot stop scoring.
        """
        taken, sharing = 0, None

        def release(left: int) -> None:
            nonlocal taken
            while taken > left:
                taken -= 1
                self._free.release()

        async with self._alone:
            try:
                while taken < self.workers:
                    await self._free.acquire()
                    taken += 1
                while self._idle:
                    await self._end(self._idle.pop())
                sharing = asyncio.get_running_loop().call_later(_ALONE_SECONDS, release, 1)
                yield
            finally:
                if sharing is not None:
                    sharing.cancel()
                release(0)

    async def _begin(self, call: bytes) -> _Worker:
        """Hand the call to a worker, and replace workers that died while they were idle."""
        while True:
            if self._closed:
                raise RuntimeError("the executor is closed")
            reused = bool(self._idle)
            worker = self._idle.pop() if reused else await self._start()
            try:
                await worker.begin(call)
            except BaseException as error:  # raised again, unless a reused worker had died
                await self._end(worker)
                if reused and isinstance(error, WorkerDied):
                    continue
                raise
            return worker

    async def _start(self) -> _Worker:
        worker = await _Worker.start()
        self._all.add(worker)
        try:
            await worker.greet()
        except BaseException:  # raised again
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: _Worker) -> None:
        await asyncio.shield(self._reap(worker))

    async def _reap(self, worker: _Worker) -> None:
        await worker.end()
        self._all.discard(worker)


class _Worker:
    """A worker: the process of its supervisor, and the server's end of its socket."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._is_closed = False

    @classmethod
    async def start(cls) -> _Worker:
        hide_memory()  # this process may have secrets in memory and environment
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                # No pipes: asyncio would wait until they are closed, in addition to the end of the process.
                process = await asyncio.create_subprocess_exec(
                    # -P: modules next to the script must not be importable as top-level ones.
                    sys.executable,
                    "-P",
                    str(_SCRIPT),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    env=_environment(),
                )
            return cls(process, *await asyncio.open_unix_connection(sock=ours))
        except BaseException:  # raised again
            ours.close()
            raise

    async def greet(self) -> None:
        """Send a new worker the module search path, and wait until it is ready."""
        await self._exchange(pickle.dumps(sys.path), "ready")

    async def begin(self, call: bytes) -> None:
        """Send a call and wait until its code is imported. Raises WorkerNotStarted."""
        await self._exchange(call, "started")

    async def finish(self, limits: Limits) -> _Finished:
        """Wait for the outcome of the call. Raises OverLimit and WorkerDied."""
        try:
            async with asyncio.timeout(limits.seconds):
                answer: _Finished = await self._receive(_Finished)
        except TimeoutError:
            raise OverLimit(f"took longer than its {limits.seconds:g} seconds") from None
        except WorkerDied:
            if self._process.returncode == _OVER_MEMORY:
                raise _over_memory(limits) from None
            raise
        return answer

    async def end(self) -> None:
        """Close the socket, which makes the supervisor end all processes and itself."""
        self._is_closed = True
        self._writer.transport.abort()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            logger.error("processes of a call do not end; their supervisor is %d", self._process.pid)

    async def _exchange(self, data: bytes, word: str) -> None:
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._send(data)
                answer = await self._receive(str)
        except TimeoutError:
            raise WorkerNotStarted("a worker does not start") from None
        except (OverLimit, WorkerDied) as error:
            raise WorkerNotStarted(str(error)) from None
        if answer != word:
            raise WorkerNotStarted(f"a worker answered {answer!r} instead of {word!r}")

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(_LENGTH.pack(len(data)) + data)
            await self._writer.drain()
        except OSError as error:
            raise WorkerNotStarted("a worker ended before it took a call") from error

    async def _receive(self, kind: Any) -> Any:
        try:
            size = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))[0]
            if size > _LARGEST_ANSWER:
                raise OverLimit(f"returned {size} bytes; {_LARGEST_ANSWER} are allowed")
            return msgpack.decode(await self._reader.readexactly(size), type=kind)
        except _UNDECODABLE as error:
            raise WorkerCrashed(f"a worker's answer cannot be decoded: {error}") from None
        except (asyncio.IncompleteReadError, OSError):
            code = await self._process.wait()
            is_own = not self._is_closed and (code >= 0 or -code in _OWN_SIGNALS)
            kind = WorkerCrashed if is_own else WorkerKilled
            raise kind(f"a worker ended without an answer (exit code {code})") from None


def _over_memory(limits: Limits) -> OverLimit:
    return OverLimit(f"used more than its {limits.memory_bytes} bytes of memory")


# -- answers --------------------------------------------------------------------------------------------


def _result(function: Callable[[Any], Any], value: bytes, opaque: Sequence[bytes]) -> Any:
    def build(kind: type, plain: Any) -> Any:
        if issubclass(kind, Opaque):
            return kind(opaque[plain])
        if issubclass(kind, PurePath):
            return kind(plain)
        raise NotImplementedError(kind)

    try:
        return msgpack.decode(value, type=_returned_type(function), dec_hook=build)
    except _UNDECODABLE as error:
        raise CallFailed(f"{function.__qualname__} did not return what it is annotated to: {error}") from None


@cache
def _returned_type(function: Callable[[Any], Any]) -> Any:
    return get_type_hints(function)["return"]


def _error(value: bytes, raises: tuple[type[Exception], ...]) -> Exception:
    """Decode the error that a call raised, with its traceback as a note."""
    if len(value) > _LARGEST_ERROR:
        return WorkerCrashed(f"a worker's error has {len(value)} bytes")
    try:
        name, arguments, text, trace = msgpack.decode(value, type=tuple[str, list[Any], str, str])
    except _UNDECODABLE as wrong:
        return WorkerCrashed(f"a worker's answer cannot be decoded: {wrong}")
    found = next(
        (kind for kind in _with_subclasses(raises) if f"{kind.__module__}.{kind.__qualname__}" == name),
        CallFailed,
    )
    error: Exception = CallFailed(text)
    if found is not CallFailed:
        with suppress(TypeError, ValueError):  # other arguments than the constructor takes
            error = found(*arguments)
    error.add_note(trace)
    return error


def _with_subclasses(kinds: Iterable[type[Exception]]) -> Iterator[type[Exception]]:
    for kind in kinds:
        yield kind
        yield from _with_subclasses(kind.__subclasses__())


# -- the process ----------------------------------------------------------------------------------------


def _environment() -> dict[str, str]:
    """The environment of a worker, without secrets: it reads untrusted files and runs third-party tasks."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")}
    return kept | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **numpy_features(_processor()),
    }


def numpy_features(processor: str) -> dict[str, str]:
    """Disable AVX-512 in NumPy on Zen 4, where its sort is eight times slower than with AVX2.

    It uses an instruction that is microcoded there, see https://github.com/numpy/x86-simd-sort/issues/6.
    ``processor`` is the content of /proc/cpuinfo.
    """
    if not re.search(r"AuthenticAMD\ncpu family\s*: 25\n.* avx512f ", processor, re.DOTALL):
        return {}
    # The first name is that of NumPy 2.4 and later. Unknown names are ignored.
    return {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_SKX AVX512_ICL AVX512_SPR"}


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""
