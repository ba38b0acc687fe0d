"""The contract of an executor."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from collidium.contracts.executor import (
    CallFailed,
    Executor,
    Limits,
    Opaque,
    OverLimit,
    WorkerCrashed,
    WorkerKilled,
)
from collidium.testing.conformance.promise import check_close, check_name, promise, refuses

_MEBIBYTE = 1024**2
_GENEROUS = Limits(memory_bytes=1024 * _MEBIBYTE, seconds=60)
_SMALL = Limits(memory_bytes=256 * _MEBIBYTE, seconds=60)
_HASTY = Limits(memory_bytes=1024 * _MEBIBYTE, seconds=0.5)
#: Time that a call may take to end after its time limit.
_PATIENCE_SECONDS = 20


async def check_executor(executor: Executor, *, enforces_memory: bool = True) -> None:
    """Check results, errors, limits and recovery. Starts real workers and crashes some of them.

    Parameters
    ----------
    executor : Executor
        The executor, which is closed afterwards.
    enforces_memory : bool
        False skips the check of the memory limit.

    Raises
    ------
    Nonconforming
        If a promise of :class:`~collidium.contracts.executor.Executor` is broken.

    Examples
    --------
    ::

        async def test_my_executor_conforms():
            await check_executor(MyExecutor())
    """
    check_name(executor.name, "an executor")
    await _check_results(executor)
    await _check_errors(executor)
    await _check_time_limit(executor)
    if enforces_memory:
        with refuses(OverLimit, "a call past its memory limit"):
            await _collect(executor, _allocate, [4096 * _MEBIBYTE])
        with refuses(OverLimit, "a call whose child processes together pass its memory limit"):
            await _collect(executor, _allocate_in_children, [120 * _MEBIBYTE], _SMALL)
    await _check_deaths(executor)
    await _check_children(executor)
    await _check_early_close(executor)
    await _check_results(executor)  # still works
    await check_close(executor)


async def _check_results(executor: Executor) -> None:
    items = list(range(20))
    promise(await _collect(executor, _square, items) == [i * i for i in items], "results in the items' order")
    promise(await _collect(executor, _square, []) == [], "no items must give no results")
    promise(await _collect(executor, _echo, [b"x"]) == [b"x"], "Opaque results must arrive")
    pids = await _collect(executor, _process_id, [0, 1])
    promise(os.getpid() not in pids, "functions must run outside the caller's process")
    fresh = [pid async for pid in executor.map(_process_id, [0, 1, 2], _GENEROUS, fresh=True)]
    promise(len(set(fresh)) == len(fresh), "each fresh call must have a process of its own")


async def _check_errors(executor: Executor) -> None:
    with refuses(CallFailed, "a function that raises an error which its caller does not expect"):
        await _collect(executor, _divide, [1, 0, 1])
    for expected in (WithFields, Exception):
        with refuses(WithFields, "a function that raises an error with fields"):
            async for _ in executor.map(_raise_with_fields, [1], _GENEROUS, raises=(expected,)):
                pass
    with refuses(CallFailed, "a result of another type than annotated"):
        await _collect(executor, _return_wrong_type, [None])


async def _check_time_limit(executor: Executor) -> None:
    began = monotonic()
    with refuses(OverLimit, "a call past its time limit"):
        await _collect(executor, _spin, [_PATIENCE_SECONDS * 2], _HASTY)
    promise(
        monotonic() - began < _PATIENCE_SECONDS, "a call past its time limit must be ended, not waited for"
    )


async def _check_deaths(executor: Executor) -> None:
    """How a worker ended is distinguished, and its call repeated, alone."""
    with refuses(WorkerCrashed, "a worker that ends without an answer"):
        await _collect(executor, _die, [3])
    with refuses(WorkerCrashed, "a worker that ends by a signal of a fault"):
        await _collect(executor, _end_by, [signal.SIGSEGV])
    with refuses(WorkerKilled, "a worker that is killed"):
        await _collect(executor, _end_by, [signal.SIGKILL])
    alone = [pid async for pid in executor.map(_process_id, [0, 1], _GENEROUS, alone=True)]
    promise(len(set(alone)) == len(alone), "each call alone must have a process of its own")
    with TemporaryDirectory() as directory:
        path = Path(directory, "killed")
        items = [None, None, str(path), None]
        made = [result async for result in executor.map_repeating(_die_once, items, _GENEROUS)]
    promise(made == [0, 0, 1, 0], "a call whose worker was killed must be repeated")


async def _check_children(executor: Executor) -> None:
    """Child processes share the call's limits and end with it, even if they keep its pipes open."""
    began = monotonic()
    with refuses(OverLimit, "a call past its time limit whose child process continues"):
        await _collect(executor, _fork_and_spin, [_PATIENCE_SECONDS * 2], _HASTY)
    with refuses(WorkerCrashed, "a worker that ends without an answer while its child process continues"):
        await _collect(executor, _fork_and_die, [_PATIENCE_SECONDS * 2])
    left = await _collect(executor, _fork, [_PATIENCE_SECONDS * 2])
    promise(
        await _collect(executor, _is_running, left) == [False],
        "processes that a call leaves must be ended",
    )
    promise(monotonic() - began < _PATIENCE_SECONDS, "child processes must be ended, not waited for")


async def _check_early_close(executor: Executor) -> None:
    began = monotonic()
    seconds = [0.0, *[_PATIENCE_SECONDS * 2.0] * 8]
    iterator: Any = executor.map(_spin, seconds, _GENEROUS)
    promise(hasattr(iterator, "aclose"), "map must return an iterator that can be closed (aclose)")
    async with aclosing(iterator) as results:
        await anext(results)
    promise(monotonic() - began < _PATIENCE_SECONDS, "closing early must end calls, not wait for them")


async def _collect(
    executor: Executor, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits = _GENEROUS
) -> list[Any]:
    return [result async for result in executor.map(function, items, limits)]


# -- functions for workers, at module level because they are pickled -------------------------------------


class WithFields(Exception):
    """An error whose constructor takes two arguments, as many real ones do."""

    def __init__(self, column: str, row: int) -> None:
        super().__init__(f"{column} {row}")
        self.column = column
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return (WithFields, (self.column, self.row))


def _square(number: int) -> int:
    return number * number


def _echo(data: bytes) -> Opaque:
    return Opaque(data)


def _return_wrong_type(_: None) -> int:
    return Path("/")  # type: ignore[return-value]  # on purpose


def _process_id(_: int) -> int:
    return os.getpid()


def _divide(number: int) -> float:
    return 1 / number


def _raise_with_fields(row: int) -> None:
    raise WithFields("hit_id", row)


def _spin(seconds: float) -> float:
    end = monotonic() + seconds
    while monotonic() < end:
        pass
    return seconds


def _allocate(size: int) -> int:
    return len(bytearray(size))


def _fork(seconds: float) -> int:
    """Leave a child process in its own session, with all inherited files."""
    if child := os.fork():
        return child
    os.setsid()
    sleep(seconds)
    os._exit(0)


def _fork_and_spin(seconds: float) -> float:
    _fork(seconds)
    return _spin(seconds)


def _fork_and_die(seconds: float) -> None:
    _fork(seconds)
    os._exit(3)


def _allocate_in_children(size: int) -> None:
    """Allocate the memory in three child processes, each below the limit."""
    for _ in range(3):
        if not os.fork():
            held = bytearray(b"x") * size
            sleep(_PATIENCE_SECONDS)
            os._exit(len(held) % 2)
    sleep(_PATIENCE_SECONDS)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _end_by(number: int) -> None:
    os.kill(os.getpid(), number)
    sleep(_PATIENCE_SECONDS)


def _die_once(path: str | None) -> int:
    """Kill the worker unless the file is there."""
    if path and not Path(path).exists():
        Path(path).touch()
        _end_by(signal.SIGKILL)
    return int(path is not None)


def _die(code: int) -> None:
    os._exit(code)
