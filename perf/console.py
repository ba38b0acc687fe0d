"""How fast the operator's console is there, how fast its screens are, and whether its memory stays flat.

    python perf/console.py [--hours 1] [--quick]

A server process on loopback with 100,000 requests and 10,000 accounts, on SQLite. First paint is that of
``collidium tui`` in a terminal of its own, from the start of the process until the first screen is drawn, and
until it has the server's answer. Each screen is then asked again and again: what it takes from the server's
answer until it is painted is the console's own. As many refreshes as an hour has are what memory is watched
over. Besides milliseconds there is CPU time, which others on the machine disturb less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import select
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admin_seed import fill

from collidium.testing.processes import end_with_parent
from collidium.testing.server import ServerProcess
from collidium_tui import ConsoleScreen
from collidium_tui.app import Console
from collidium_tui.screens import SCREENS
from collidium_tui.session import Link, Session

SETTINGS = {
    "ADMIN_TOKEN": "perf-console",
    "PLATFORM_FOLLOW_REQUESTS": "false",
    "PLATFORM_LOG_LEVEL": "warning",
}
SIZE = (132, 43)
#: What is on the first screen at once, and what the server's answer brings.
PAINTED, ANSWERED = b"Overview", b"connected"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Milliseconds since the start, and of them those on a CPU."""

    elapsed: float
    on_cpu: float


def first_paint(server: ServerProcess) -> tuple[Moment, Moment]:
    """When the command's screen is drawn, and when it shows what the server has answered."""
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url, "TERM": "xterm-256color"}
    del environment["PLATFORM_FOLLOW_REQUESTS"], environment["PLATFORM_LOG_LEVEL"]
    started = time.perf_counter()
    process, terminal = pty.fork()
    if not process:
        end_with_parent()
        os.execve(sys.executable, [sys.executable, "-m", "collidium", "tui"], environment)  # noqa: S606 -- ourselves
    seen, moments = b"", list[Moment]()
    try:
        for awaited in (PAINTED, ANSWERED):
            while awaited not in seen:
                left = started + PATIENCE_SECONDS - time.perf_counter()
                if not select.select([terminal], [], [], max(left, 0))[0]:
                    raise TimeoutError(seen[-2000:])
                seen += os.read(terminal, 65536)
            moments.append(Moment((time.perf_counter() - started) * 1000, cpu_milliseconds(process)))
        return moments[0], moments[1]
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def cpu_milliseconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def running(server: ServerProcess) -> AsyncIterator[Console]:
    """The console without a terminal, once the server has answered it."""
    console = Console(Session(server.base_url, server.admin_token))
    async with console.run_test(size=SIZE):
        await until(lambda: console.session.status.link is Link.UP)
        yield console


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while not condition():
        assert time.perf_counter() < deadline
        await asyncio.sleep(0.001)


async def shown(console: Console, label: str) -> ConsoleScreen[Any]:
    """The screen of that label with its first data."""
    console.action_show(label)
    await until(lambda: getattr(console.screen, "label", "") == label)
    screen = console.screen
    assert isinstance(screen, ConsoleScreen)
    await until(lambda: screen.data is not None and not screen.is_fetching)
    return screen


async def refreshed(screen: ConsoleScreen[Any]) -> tuple[float, float, float]:
    """Milliseconds of one refresh until it is painted: from the question, from the answer, on the CPU."""
    answered, answered_cpu, painted = 0.0, 0.0, asyncio.Event()
    show = screen.show

    def watched(data: Any) -> None:
        nonlocal answered, answered_cpu
        answered, answered_cpu = time.perf_counter(), time.process_time()
        show(data)
        screen.call_after_refresh(painted.set)

    screen.show = watched  # to see when it is called
    started = time.perf_counter()
    try:
        screen.refresh_now()
        await asyncio.wait_for(painted.wait(), PATIENCE_SECONDS)
    finally:
        del screen.show
    ended, cpu = time.perf_counter(), time.process_time() - answered_cpu
    return (ended - started) * 1000, (ended - answered) * 1000, cpu * 1000


async def screens(server: ServerProcess, repeats: int) -> None:
    print("| screen | asked to painted (ms) | answered to painted | fastest | on the CPU |")
    print("|---|---:|---:|---:|---:|")
    async with running(server) as console:
        for label in SCREENS:
            screen = await shown(console, label)
            whole, own, cpu = zip(*[await refreshed(screen) for _ in range(repeats)], strict=True)
            times = (statistics.median(whole), statistics.median(own), min(own), statistics.median(cpu))
            print(f"| {label} | {' | '.join(f'{time:.0f}' for time in times)} |")


async def soak(server: ServerProcess, hours: float) -> None:
    """Refresh every screen as often as it does in that time, and leave and enter it now and then."""
    print("\n| part of the refreshes | resident memory (MB) |\n|---:|---:|")
    async with running(server) as console:
        for tenth in range(11):
            for label in SCREENS if tenth else ():
                screen = await shown(console, label)
                for _ in range(max(1, round(hours * 360 / screen.refresh_seconds))):
                    await refreshed(screen)
            print(f"| {tenth * 10} % | {resident_megabytes():.0f} |")


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    parser.add_argument("--hours", type=float, default=1.0, help="whose refreshes memory is watched over")
    options = parser.parse_args()
    quick = options.quick
    requests, accounts, repeats = (1_000, 100, 3) if quick else (100_000, 10_000, 21)
    with tempfile.TemporaryDirectory() as name, ServerProcess(Path(name), env=SETTINGS) as server:
        asyncio.run(fill(f"sqlite:///{server.data_dir / 'collidium.sqlite3'}", requests, accounts))
        print(f"{requests:,} requests, {accounts:,} accounts\n")
        paints = [first_paint(server) for _ in range(3 if quick else 11)]
        print("| | median (ms) | fastest | on the CPU |\n|---|---:|---:|---:|")
        for what, moments in zip(
            ("first paint", "the server's answer"), zip(*paints, strict=True), strict=True
        ):
            elapsed = [moment.elapsed for moment in moments]
            cpu = statistics.median(moment.on_cpu for moment in moments)
            print(f"| {what} | {statistics.median(elapsed):.0f} | {min(elapsed):.0f} | {cpu:.0f} |")
        print()
        asyncio.run(screens(server, repeats))
        asyncio.run(soak(server, 0.01 if quick else options.hours))


if __name__ == "__main__":
    main()
