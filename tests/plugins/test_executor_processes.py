"""Worker processes: the executor's contract, and what a server needs beyond it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.waiting import until

from collidium import settings
from collidium.contracts.executor import Limits, OverLimit, WorkerDied
from collidium.testing.conformance import check_executor
from collidium_plugins.executor_processes import Processes, collidium_executors

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a subreaper")

#: How long after its end a call's processes may be there, on a busy machine.
GRACE_SECONDS = 8
LIMITS = Limits(memory_bytes=512 * 1024**2, seconds=30)

#: Functions for the workers, importable there because their directory is on this process's path.
CALLS = """
import mmap, os, sys, time
from pathlib import Path

def pid(_): return os.getpid()
def parent(_): return os.getppid()
def square(n): return n * n
def modules(_): return sorted(sys.modules)
def environment(name): return os.environ.get(name)
def shout(text): print(text * 100_000, flush=True); return len(text)
def hold(path):
    open(path, "w").write(str(os.getpid()))
    while True: time.sleep(60)
def touch(path): open(path, "a").close(); return path
def map_shared(size):
    memory = mmap.mmap(-1, size)
    for at in range(0, size, 4096): memory[at] = 1
    while True: time.sleep(60)
def allocate(size): return len(bytearray(size))
class Odd(Exception):
    def __init__(self, a, b): super().__init__(f"{a} {b}")
def odd(_): raise Odd(1, 2)

def note(path):
    Path(f"{path}.new").write_text(str(os.getpid()))
    Path(f"{path}.new").rename(path)
def leave(path):
    "A child that keeps all it inherited, and a daemon: a session of its own, its parent gone."
    if not os.fork():
        note(f"{path}.child")
        time.sleep(120)
    if not os.fork():
        os.setsid()
        if os.fork(): os._exit(0)
        note(f"{path}.daemon")
        time.sleep(120)
    while not all(Path(f"{path}.{name}").exists() for name in ("child", "daemon")): time.sleep(0.01)
    return path
def leave_and_spin(path):
    leave(path)
    while True: pass
def leave_and_crash(path):
    leave(path)
    os._exit(3)
def share_memory(sizes):
    "As many children as sizes, each with so many bytes."
    for size in sizes:
        if not os.fork():
            held = bytearray(b"x") * size
            time.sleep(120)
    while True: os.wait()
def run_on(n):
    os.fork()
    return n
def fork_with(size):
    held = bytearray(b"x") * size
    pids = [os.fork() or (time.sleep(0.5), os._exit(0)) for _ in range(3)]
    for pid in pids: os.waitpid(pid, 0)
    return size
def wait_for_child(n):
    if not os.fork(): os._exit(0)
    return os.wait() and n
"""

LEFT = ("child", "daemon")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "worker_calls.py").write_text(CALLS)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("worker_calls", None)
    import worker_calls  # type: ignore[import-not-found]  # made just now

    return worker_calls


@pytest.fixture
async def executor() -> AsyncIterator[Processes]:
    executor = Processes(2)
    yield executor
    await executor.close()


async def collect(
    executor: Processes, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits = LIMITS
) -> list[Any]:
    return [result async for result in executor.map(function, items, limits)]


async def test_it_keeps_the_contract() -> None:
    await check_executor(Processes(2))


def test_the_plugin_has_as_many_workers_as_settings_say(tmp_path: Path) -> None:
    (executor,) = collidium_executors(settings.load(data_dir=tmp_path, scoring_workers=3))
    assert isinstance(executor, Processes)
    assert (executor.name, executor.workers) == ("processes", 3)


def test_importing_the_plugin_is_cheap() -> None:
    code = "import sys, collidium_plugins.executor_processes as _; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"'{name}'" in loaded for name in ("numpy", "pyarrow", "quart", "tortoise", "pydantic"))


async def test_workers_are_used_again(executor: Processes, calls: Any) -> None:
    first = set(await collect(executor, calls.pid, range(8)))
    assert len(first) <= 2
    assert set(await collect(executor, calls.pid, range(8))) <= first


async def test_a_worker_imports_only_what_its_call_needs(executor: Processes, calls: Any) -> None:
    (names,) = await collect(executor, calls.modules, [None])
    assert not {"numpy", "pyarrow", "quart", "tortoise", "pydantic", "asyncio", "pytest"} & set(names)


async def test_a_worker_does_not_know_the_servers_secrets(
    executor: Processes, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["ADMIN_TOKEN", "HF_TOKEN", "PLATFORM_SECRET_KEY", "PLATFORM_DATABASE_URL", "AWS_SECRET_KEY"]
    for name in secrets:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("MONKEY", "banana")
    found = await collect(executor, calls.environment, [*secrets, "MONKEY"])
    assert found == [None] * len(secrets) + ["banana"]


async def test_what_a_task_prints_does_not_disturb_the_answers(executor: Processes, calls: Any) -> None:
    assert await collect(executor, calls.shout, ["a", "bc"]) == [1, 2]


async def test_an_error_that_cannot_be_pickled_arrives_by_its_message(
    executor: Processes, calls: Any
) -> None:
    with pytest.raises(RuntimeError, match=r"Odd: 1 2") as raised:
        await collect(executor, calls.odd, [None])
    assert "worker_calls.py" in raised.value.__notes__[0]


async def test_a_worker_killed_while_idle_is_replaced_unnoticed(executor: Processes, calls: Any) -> None:
    for pid in set(await collect(executor, calls.pid, range(4))):
        os.kill(pid, signal.SIGKILL)
    assert await collect(executor, calls.square, [1, 2, 3]) == [1, 4, 9]


async def test_a_worker_killed_at_work_is_told_and_the_next_call_works(
    executor: Processes, calls: Any, tmp_path: Path
) -> None:
    (pid,) = await collect(executor, calls.pid, [None])
    held = asyncio.create_task(collect(executor, calls.hold, [str(tmp_path / "held")]))
    await until(lambda: (tmp_path / "held").exists())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="exit code -9"):
        await held
    assert await collect(executor, calls.square, [3]) == [9]


async def test_too_much_memory_is_over_the_limit_and_spares_the_worker(
    executor: Processes, calls: Any
) -> None:
    (pid,) = await collect(executor, calls.pid, [None])
    with pytest.raises(OverLimit, match="memory"):
        await collect(executor, calls.allocate, [1024**3])
    assert await collect(executor, calls.allocate, [1024**3], Limits(2 * 1024**3, 30)) == [1024**3]
    assert await collect(executor, calls.pid, [None]) == [pid]


async def test_cancelling_ends_what_runs(executor: Processes, calls: Any, tmp_path: Path) -> None:
    paths = [tmp_path / f"held{number}" for number in range(4)]
    held = asyncio.create_task(collect(executor, calls.hold, [str(path) for path in paths]))
    await until(lambda: any(path.exists() and path.read_text() for path in paths))
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    assert not any(is_alive(int(path.read_text() or 0)) for path in paths if path.exists())


async def test_callers_take_turns(calls: Any) -> None:
    executor = Processes(1)
    order: list[str] = []

    async def run(name: str, count: int) -> None:
        async for _ in executor.map(calls.square, range(count), LIMITS):
            order.append(name)

    await asyncio.gather(run("large", 30), run("small", 3))
    await executor.close()
    assert order.index("small") < 10
    assert [n for n, name in enumerate(order) if name == "small"][-1] < 20


async def test_a_closed_executor_has_no_workers_and_takes_no_calls(executor: Processes, calls: Any) -> None:
    (pid,) = await collect(executor, calls.pid, [None])
    await executor.close()
    await executor.close()
    assert not is_alive(pid)
    with pytest.raises(RuntimeError, match="closed"):
        await collect(executor, calls.pid, [None])


async def test_closing_the_iterator_early_begins_nothing_more(
    executor: Processes, calls: Any, tmp_path: Path
) -> None:
    paths = [str(tmp_path / f"{number}") for number in range(100)]
    results = executor.map(calls.touch, paths, LIMITS)
    async with aclosing(results):
        assert await anext(results) == paths[0]
    assert len(list(tmp_path.glob("[0-9]*"))) < 20


@linux
async def test_workers_die_with_the_server(calls: Any, tmp_path: Path) -> None:
    held = tmp_path / "held"
    server = tmp_path / "server.py"
    server.write_text(
        "import asyncio, worker_calls\n"
        "from collidium.contracts.executor import Limits\n"
        "from collidium_plugins.executor_processes import Processes\n"
        "async def main():\n"
        "    executor = Processes(1)\n"
        f"    calls = executor.map(worker_calls.leave_and_spin, [{str(held)!r}], Limits(2**29, 60))\n"
        "    async for _ in calls: pass\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(server))
    await until(lambda: all(Path(f"{held}.{name}").exists() for name in LEFT))
    pids = [int(Path(f"{held}.{name}").read_text()) for name in LEFT]
    process.kill()
    await process.wait()
    await until(lambda: not any(map(is_alive, pids)), GRACE_SECONDS)


@linux
@pytest.mark.parametrize("behaviour", ["leave_and_spin", "leave_and_crash", "leave"])
async def test_what_a_call_starts_ends_with_it(calls: Any, tmp_path: Path, behaviour: str) -> None:
    executor, path = Processes(1), tmp_path / "left"
    began = monotonic()
    offender = asyncio.create_task(
        collect(executor, getattr(calls, behaviour), [str(path)], Limits(LIMITS.memory_bytes, 3))
    )
    innocent = asyncio.create_task(collect(executor, calls.square, [3]))
    _, late = await asyncio.wait([offender, innocent], timeout=3 + GRACE_SECONDS)
    left = [pid for name in LEFT if is_alive(pid := int(Path(f"{path}.{name}").read_text()))]
    for pid in left:
        os.kill(pid, signal.SIGKILL)  # what a failing test left
    await executor.close()
    assert not late, f"not answered after {monotonic() - began:.1f} s"
    assert not left
    assert type(offender.exception()) is {"leave_and_spin": OverLimit, "leave_and_crash": WorkerDied}.get(
        behaviour, type(None)
    )
    assert innocent.result() == [9]


@linux
async def test_closing_ends_what_running_calls_started(calls: Any, tmp_path: Path) -> None:
    executor, path = Processes(1), tmp_path / "left"
    call = asyncio.create_task(collect(executor, calls.leave_and_spin, [str(path)]))
    await until(lambda: all(Path(f"{path}.{name}").exists() for name in LEFT))
    async with asyncio.timeout(GRACE_SECONDS):
        await executor.close()
    assert not [name for name in LEFT if is_alive(int(Path(f"{path}.{name}").read_text()))]
    with pytest.raises(WorkerDied):
        await call


@linux
async def test_children_share_the_memory_limit_of_a_call(executor: Processes, calls: Any) -> None:
    mebibytes = 1024**2
    with pytest.raises(OverLimit, match="memory"):
        await collect(executor, calls.share_memory, [[200 * mebibytes] * 4])
    assert await collect(executor, calls.square, [3]) == [9]


@linux
async def test_memory_that_could_be_shared_counts(executor: Processes, calls: Any) -> None:
    with pytest.raises(OverLimit, match="memory"):
        await collect(executor, calls.map_shared, [200 * 1024**2], Limits(128 * 1024**2, 10))


@linux
async def test_memory_that_children_only_share_counts_once(executor: Processes, calls: Any) -> None:
    assert await collect(executor, calls.fork_with, [300 * 1024**2]) == [300 * 1024**2]


async def test_a_child_that_runs_on_gives_no_answer(executor: Processes, calls: Any) -> None:
    assert await collect(executor, calls.run_on, range(6)) == list(range(6))


async def test_children_that_were_waited_for_cost_no_worker(calls: Any) -> None:
    executor = Processes(1)
    (pid,) = await collect(executor, calls.pid, [None])
    assert await collect(executor, calls.wait_for_child, [1, 2]) == [1, 2]
    assert await collect(executor, calls.pid, [None]) == [pid]
    await executor.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
