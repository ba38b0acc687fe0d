"""Executor ``processes``: isolation, limits and recovery of worker processes."""

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
from tests.needs import Needs
from tests.waiting import until

from collidium import settings
from collidium.contracts.executor import (
    CallFailed,
    Limits,
    OverLimit,
    WorkerCrashed,
    WorkerDied,
    WorkerKilled,
    WorkerNotStarted,
)
from collidium.runtime import confinement
from collidium_plugins import executor_processes
from collidium_plugins.executor_processes import Processes, collidium_executors, numpy_features


@pytest.fixture
def linux(needs: Needs) -> None:
    """Processes of calls are found in /proc and are children of a subreaper."""
    needs("linux")


#: Time that the processes of a call may take to end on a busy machine.
GRACE_SECONDS = 8
LIMITS = Limits(memory_bytes=512 * 1024**2, seconds=30)

#: Functions that workers import from a directory on the path.
CALLS = """
import mmap, os, pickle, sys, threading, time
from pathlib import Path
from collidium.contracts.executor import Opaque

def pid(_) -> int: return os.getpid()
def parent(_) -> int: return os.getppid()
def square(n) -> int: return n * n
def modules(_) -> list[str]: return sorted(sys.modules)
def environment(name) -> str | None: return os.environ.get(name)
def shout(text) -> int: print(text * 100_000, flush=True); return len(text)
def hold(path) -> None:
    open(path, "w").write(str(os.getpid()))
    while True: time.sleep(60)
def touch(path) -> str: open(path, "a").close(); return path
def map_shared(size) -> None:
    memory = mmap.mmap(-1, size)
    for at in range(0, size, 4096): memory[at] = 1
    while True: time.sleep(60)
def end_by(number) -> None: os.kill(os.getpid(), number); time.sleep(60)
def wait_for(path) -> None:
    open(path + ".waits", "w").close()
    while not os.path.exists(path): time.sleep(0.01)
def allocate(size) -> int: return len(bytearray(size))
class Odd(Exception):
    def __init__(self, a, b): super().__init__(f"{a} {b}")
def odd(_) -> None: raise Odd(1, 2)

class Trap:
    def __init__(self, path): self.path = path
    def __reduce__(self): return os.mkdir, (self.path,)
class TrapError(Exception, Trap):
    __reduce__ = Trap.__reduce__
def return_trap(path) -> dict: return Trap(path)
def raise_trap(path) -> None: raise TrapError(path)
def raise_much(count) -> None: raise KeyError([[]] * count)
def scatter(count) -> list[Opaque]: return [Opaque(b"xy")] * count
def send_error(count) -> None:
    "As raise_much, without the limits of the worker."
    from msgspec import msgpack
    from collidium_plugins.scoring_worker import LENGTH
    error = msgpack.encode(("builtins.KeyError", [[[]] * count], "", ""))
    frame = msgpack.encode(("raised", error, [], False))
    for number in range(3, 20):
        try: os.write(number, LENGTH.pack(len(frame)) + frame)
        except OSError: pass
    time.sleep(60)
def send_trap(path) -> None:
    "Writes to the worker's socket, as an exploit could."
    frame = pickle.dumps(Trap(path))
    for number in range(3, 20):
        try: os.write(number, len(frame).to_bytes(8, "little") + frame)
        except OSError: pass
    time.sleep(60)
def swell(count) -> list[dict[str, int]]: return [{}] * count
def give_back(data) -> Opaque: return Opaque(data)
def tamper(_) -> list:
    "Reports traces of earlier calls, and leaves some."
    found = [os.getcwd() == "/", hasattr(sys, "tampered"), threading.active_count() > 1]
    os.chdir("/")
    sys.tampered = True
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return found
def search(secret) -> list[str]:
    "Lists ancestors of this process whose environment or memory can be read."
    found, pid = [], os.getpid()
    while (pid := int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])) > 1:
        for name in ("environ", "mem"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file: file.read(0 if name == "mem" else -1)
            except OSError: continue
            if secret.encode() in Path(f"/proc/{pid}/environ").read_bytes(): found.append(f"{name} of {pid}")
    return found

def note(path):
    Path(f"{path}.new").write_text(str(os.getpid()))
    Path(f"{path}.new").rename(path)
def leave(path) -> str:
    "Leaves a child, and a daemon: an orphan in its own session."
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
def leave_and_spin(path) -> None:
    leave(path)
    while True: pass
def leave_and_crash(path) -> None:
    leave(path)
    os._exit(3)
def burst(size) -> None:
    "Three children that allocate memory, and are killed as soon as all have done so."
    held, holds = os.pipe()
    pids = [os.fork() or (bytearray(b"x") * size, os.write(holds, b"x"), time.sleep(60)) for _ in range(3)]
    for _ in pids: os.read(held, 1)
    for pid in pids: os.kill(pid, 9)
    for pid in pids: os.waitpid(pid, 0)
def cgroups(_) -> str: return Path("/proc/self/cgroup").read_text()
def run_on(n) -> int:
    os.fork()
    return n
def fork_with(size) -> int:
    held = bytearray(b"x") * size
    pids = [os.fork() or (time.sleep(0.5), os._exit(0)) for _ in range(3)]
    for pid in pids: os.waitpid(pid, 0)
    return size
def wait_for_child(n) -> int:
    if not os.fork(): os._exit(0)
    return os.wait() and n
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "worker_calls.py").write_text(CALLS)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("worker_calls", None)
    import worker_calls  # made just now

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


def test_settings_give_the_number_of_workers(tmp_path: Path) -> None:
    (executor,) = collidium_executors(settings.load(data_dir=tmp_path, scoring_workers=3))
    assert isinstance(executor, Processes)
    assert (executor.name, executor.workers) == ("processes", 3)


async def test_workers_are_reused(executor: Processes, calls: Any) -> None:
    first = set(await collect(executor, calls.pid, range(8)))
    assert len(first) <= 2
    assert set(await collect(executor, calls.pid, range(8))) <= first


async def test_a_worker_imports_only_what_its_call_needs(executor: Processes, calls: Any) -> None:
    (names,) = await collect(executor, calls.modules, [None])
    assert not {"numpy", "pyarrow", "quart", "tortoise", "pydantic", "asyncio", "pytest"} & set(names)


async def test_a_worker_lacks_the_servers_secrets(
    executor: Processes, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["ADMIN_TOKEN", "DATABASE_URL", "SENTRY_DSN", "AWS_ACCESS_KEY_ID", "PGPASSWORD", "MONKEY"]
    for name in (*secrets, "LC_TIME"):
        monkeypatch.setenv(name, "secret")
    found = await collect(executor, calls.environment, [*secrets, "LC_TIME"])
    assert found == [None] * len(secrets) + ["secret"]


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("server_is", ["as started", "without capabilities", "a command"])
async def test_a_worker_cannot_read_the_servers_memory(calls: Any, tmp_path: Path, server_is: str) -> None:
    """A server without capabilities is like one that does not run as root; a command hides no secrets."""
    command = server_is == "a command"
    server = tmp_path / "server.py"
    server.write_text(
        "import asyncio, os, worker_calls\n"
        "from collidium import settings\n"
        "from collidium.contracts.executor import Limits\n"
        "from collidium.server.worker import hide_secrets\n"
        "from collidium_plugins.executor_processes import Processes\n"
        "from collidium.runtime.confinement import drop_capabilities\n"
        f"if {server_is != 'as started'}: drop_capabilities(1)\n"
        "async def main():\n"
        "    executor = Processes(1)\n"
        "    async for found in executor.map(worker_calls.search, ['one for all'], Limits(2**29, 60)):\n"
        f"        print(found, {command} or 'ADMIN_TOKEN' in os.environ)\n"
        "    await executor.close()\n"
        "assert settings.load().admin_token\n"
        f"{command} or hide_secrets()\n"
        "asyncio.run(main())\n"
    )
    environment = os.environ | {"ADMIN_TOKEN": "one for all", "PYTHONPATH": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(server), env=environment, stdout=subprocess.PIPE
    )
    assert (await process.communicate())[0] == f"[] {command}\n".encode()


# -- answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", ["return_trap", "raise_trap", "send_trap"])
async def test_nothing_of_an_answer_is_executed(
    executor: Processes, calls: Any, tmp_path: Path, behaviour: str
) -> None:
    with pytest.raises(WorkerDied if behaviour == "send_trap" else CallFailed):
        await collect(executor, getattr(calls, behaviour), [str(tmp_path / "trap")])
    assert not (tmp_path / "trap").exists()
    assert await collect(executor, calls.square, [3]) == [9]


async def test_the_size_of_answers_is_limited(executor: Processes, calls: Any) -> None:
    with pytest.raises(OverLimit, match="returned"):
        await collect(executor, calls.swell, [3 * 1024**2])
    with pytest.raises(OverLimit, match="returned"):
        await collect(executor, calls.give_back, [bytes(130 * 1024**2)], Limits(2**30, 30))
    assert await collect(executor, calls.give_back, [bytes(LIMITS.memory_bytes // 16)])
    assert await collect(executor, calls.square, [3]) == [9]


@pytest.mark.parametrize("behaviour", ["raise_much", "send_error", "scatter"])
async def test_the_number_of_objects_in_answers_is_limited(
    executor: Processes, calls: Any, behaviour: str
) -> None:
    """Millions fit into the bytes of an answer, and would block the event loop."""
    with pytest.raises((KeyError, WorkerDied)) as caught:
        async for _ in executor.map(getattr(calls, behaviour), [300_000], LIMITS, raises=(KeyError,)):
            pass
    assert len(repr(caught.value)) < 1000
    assert await collect(executor, calls.square, [3]) == [9]


async def test_a_fresh_call_finds_nothing_of_another(executor: Processes, calls: Any) -> None:
    left = [found async for found in executor.map(calls.tamper, range(4), LIMITS, fresh=True)]
    assert left == [[False, False, False]] * 4
    assert await collect(executor, calls.tamper, [0]) == [[False, False, False]]


@pytest.mark.parametrize(
    ("vendor", "family", "flag", "disabled"),
    [
        ("AuthenticAMD", 25, "avx512f", True),  # Zen 4
        ("AuthenticAMD", 25, "avx2", False),  # Zen 3
        ("AuthenticAMD", 26, "avx512f", False),
        ("GenuineIntel", 25, "avx512f", False),
    ],
)
async def test_workers_sort_without_avx512_on_zen_4(
    vendor: str, family: int, flag: str, disabled: bool
) -> None:
    cpuinfo = (
        f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\nflags\t\t: fpu {flag} sha_ni\n\n"
    )
    assert bool(numpy_features(cpuinfo * 2)) == disabled


async def test_output_of_tasks_does_not_disturb_answers(executor: Processes, calls: Any) -> None:
    assert await collect(executor, calls.shout, ["a", "bc"]) == [1, 2]


async def test_an_unexpected_error_has_its_message(executor: Processes, calls: Any) -> None:
    with pytest.raises(CallFailed, match=r"Odd: 1 2") as raised:
        await collect(executor, calls.odd, [None])
    assert "worker_calls.py" in raised.value.__notes__[0]


async def test_a_worker_killed_while_idle_is_replaced(executor: Processes, calls: Any) -> None:
    for pid in set(await collect(executor, calls.pid, range(4))):
        os.kill(pid, signal.SIGKILL)
    assert await collect(executor, calls.square, [1, 2, 3]) == [1, 4, 9]


async def test_a_worker_killed_at_work_fails_only_its_call(
    executor: Processes, calls: Any, tmp_path: Path
) -> None:
    (pid,) = await collect(executor, calls.pid, [None])
    held = asyncio.create_task(collect(executor, calls.hold, [str(tmp_path / "held")]))
    await until(lambda: (tmp_path / "held").exists())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerKilled, match="exit code -9"):
        await held
    assert await collect(executor, calls.square, [3]) == [9]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGKILL, WorkerKilled),
        (signal.SIGXCPU, WorkerKilled),
        (signal.SIGSEGV, WorkerCrashed),
        (signal.SIGABRT, WorkerCrashed),
    ],
)
async def test_faults_of_calls_are_told_from_kills(
    executor: Processes, calls: Any, number: int, kind: type[WorkerDied]
) -> None:
    with pytest.raises(WorkerDied) as caught:
        await collect(executor, calls.end_by, [number])
    assert type(caught.value) is kind


async def test_a_killed_supervisor_is_no_fault_of_the_call(
    executor: Processes, calls: Any, tmp_path: Path
) -> None:
    (supervisor,) = await collect(executor, calls.parent, [None])
    held = asyncio.create_task(collect(executor, calls.hold, [str(tmp_path / "held")]))
    await until(lambda: (tmp_path / "held").exists())
    os.kill(supervisor, signal.SIGKILL)
    with pytest.raises(WorkerKilled):
        await held


async def test_a_worker_that_does_not_start_is_no_fault_of_the_call(
    executor: Processes, calls: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_processes, "_SCRIPT", tmp_path / "missing.py")
    with pytest.raises(WorkerNotStarted):
        await collect(executor, calls.square, [3])


async def test_a_call_alone_waits_until_no_other_runs(calls: Any, tmp_path: Path) -> None:
    executor, order = Processes(2), list[str]()

    async def run(name: str, *, alone: bool) -> None:
        async for _ in executor.map(calls.square, [3], LIMITS, alone=alone):
            order.append(name)

    held = asyncio.create_task(collect(executor, calls.wait_for, [str(tmp_path / "go")]))
    await until(lambda: (tmp_path / "go.waits").exists())
    alone = [asyncio.create_task(run("alone", alone=True)) for _ in range(2)]
    await run("beside", alone=False)
    assert order == ["beside"]
    (tmp_path / "go").touch()
    await asyncio.gather(held, *alone)
    assert order == ["beside", "alone", "alone"]
    await run("after", alone=False)
    await executor.close()


async def test_a_memory_error_does_not_end_the_worker(executor: Processes, calls: Any) -> None:
    (pid,) = await collect(executor, calls.pid, [None])
    with pytest.raises(OverLimit, match="memory"):
        await collect(executor, calls.allocate, [1024**3])
    assert await collect(executor, calls.allocate, [1024**3], Limits(2 * 1024**3, 30)) == [1024**3]
    assert await collect(executor, calls.pid, [None]) == [pid]


async def test_cancelling_ends_running_calls(executor: Processes, calls: Any, tmp_path: Path) -> None:
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


async def test_closing_the_iterator_starts_no_more_calls(
    executor: Processes, calls: Any, tmp_path: Path
) -> None:
    paths = [str(tmp_path / f"{number}") for number in range(100)]
    results = executor.map(calls.touch, paths, LIMITS)
    async with aclosing(results):
        assert await anext(results) == paths[0]
    assert len(list(tmp_path.glob("[0-9]*"))) < 20


@pytest.mark.usefixtures("linux")
async def test_workers_die_with_the_server(calls: Any, tmp_path: Path) -> None:
    held = tmp_path / "held"
    server = tmp_path / "server.py"
    server.write_text(
        "import asyncio, worker_calls\n"
        "from collidium.contracts.executor import Limits\n"
        "from collidium_plugins.executor_processes import Processes, numpy_features\n"
        "async def main():\n"
        "    executor = Processes(1)\n"
        f"    calls = executor.map(worker_calls.leave_and_spin, [{str(held)!r}], Limits(2**29, 60))\n"
        "    async for _ in calls: pass\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(server))
    pids = await pids_left_at(held)
    process.kill()
    await process.wait()
    await until(lambda: not any(map(is_alive, pids)), GRACE_SECONDS)


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("behaviour", ["leave_and_spin", "leave_and_crash", "leave"])
async def test_processes_of_a_call_end_with_it(calls: Any, tmp_path: Path, behaviour: str) -> None:
    executor, path = Processes(1), tmp_path / "left"
    began = monotonic()
    offender = asyncio.create_task(
        collect(executor, getattr(calls, behaviour), [str(path)], Limits(LIMITS.memory_bytes, 3))
    )
    innocent = asyncio.create_task(collect(executor, calls.square, [3]))
    _, late = await asyncio.wait([offender, innocent], timeout=3 + GRACE_SECONDS)
    left = [pid for pid in await pids_left_at(path) if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)  # what a failing test left
    await executor.close()
    assert not late, f"not answered after {monotonic() - began:.1f} s"
    assert not left
    assert type(offender.exception()) is {"leave_and_spin": OverLimit, "leave_and_crash": WorkerCrashed}.get(
        behaviour, type(None)
    )
    assert innocent.result() == [9]


@pytest.mark.usefixtures("linux")
async def test_closing_ends_processes_of_running_calls(calls: Any, tmp_path: Path) -> None:
    executor, path = Processes(1), tmp_path / "left"
    call = asyncio.create_task(collect(executor, calls.leave_and_spin, [str(path)]))
    pids = await pids_left_at(path)
    async with asyncio.timeout(GRACE_SECONDS):
        await executor.close()
    assert not any(map(is_alive, pids))
    with pytest.raises(WorkerDied):
        await call


async def test_a_cgroup_limits_the_memory_of_a_call(needs: Needs, executor: Processes, calls: Any) -> None:
    needs("cgroups")
    limits = Limits(256 * 1024**2, 30)
    (cgroups,) = await collect(executor, calls.cgroups, [None], limits)
    assert "/collidium-scoring-" in cgroups
    with pytest.raises(OverLimit, match="memory"):
        await collect(executor, calls.burst, [150 * 1024**2], limits)
    assert await collect(executor, calls.square, [3]) == [9]
    await executor.close()
    parent = confinement.parent_cgroup()
    assert parent is not None
    left = {path.name for path in parent.glob("collidium-scoring-*")}
    assert not [name for name in left if f"/{name}" in cgroups]


def test_a_cgroup_of_another_container_ends_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes have the id 0 here: killing that would kill the server."""
    killed: list[int] = []
    monkeypatch.setattr(confinement, "kill", killed.append)
    monkeypatch.setattr(confinement, "parent_cgroup", lambda: tmp_path)
    (tmp_path / "collidium-scoring-4194305").mkdir()  # no process has that number
    (tmp_path / "collidium-scoring-4194305" / "cgroup.procs").write_text("0\n0\n4194306\n")
    assert confinement.make_cgroup("collidium-scoring-", 1)
    assert killed == [4194306]


#: Prints whether three children of so many MiB are over a limit of 200.
WATCHED = """
import os, resource, signal, sys
from collidium_plugins import scoring_worker
reading, writing = os.pipe()
for _ in range(3):
    if not (pid := os.fork()):
        resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20))
        held = bytearray(b"x") * (int(sys.argv[1]) << 20)
        os.write(writing, b"x")
        signal.pause()
    os.read(reading, 1)
print(scoring_worker._is_over_memory(pid))
scoring_worker._end_all(pid)
"""


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize(("mebibytes", "is_over"), [(30, "False"), (90, "True")])
def test_memory_is_watched_without_a_cgroup(mebibytes: int, is_over: str) -> None:
    command = [sys.executable, "-c", WATCHED, str(mebibytes)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.strip() == is_over


@pytest.mark.usefixtures("linux")
async def test_shareable_memory_counts(executor: Processes, calls: Any) -> None:
    with pytest.raises(OverLimit, match="memory"):
        await collect(executor, calls.map_shared, [200 * 1024**2], Limits(128 * 1024**2, 10))


@pytest.mark.usefixtures("linux")
async def test_memory_shared_by_children_counts_once(executor: Processes, calls: Any) -> None:
    assert await collect(executor, calls.fork_with, [300 * 1024**2]) == [300 * 1024**2]


async def test_a_forked_child_sends_no_answer(executor: Processes, calls: Any) -> None:
    assert await collect(executor, calls.run_on, range(6)) == list(range(6))


async def test_reaped_children_do_not_end_the_worker(calls: Any) -> None:
    executor = Processes(1)
    (pid,) = await collect(executor, calls.pid, [None])
    assert await collect(executor, calls.wait_for_child, [1, 2]) == [1, 2]
    assert await collect(executor, calls.pid, [None]) == [pid]
    await executor.close()


async def pids_left_at(path: Path) -> list[int]:
    """The child and the daemon of a call of ``leave``."""
    files = [Path(f"{path}.{name}") for name in ("child", "daemon")]
    await until(lambda: all(file.exists() for file in files))
    return [int(file.read_text()) for file in files]


def is_alive(pid: int) -> bool:
    """Whether a process runs and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
