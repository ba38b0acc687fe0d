"""Processes that order events and follow requests until they are killed; run with ``python -m``.

Settings and what to do are its argument, as JSON. For each of ``lives`` a process of its own is forked, which
ends at its failpoint; their exit codes go to stdout. Without ``lives`` this process follows until SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.core.simulations.conftest import GRANT, reached
from tests.core.simulations.filed import Filed
from tests.core.simulations.scripted import Bringing
from tests.waiting import start_announced

from collidium import accounts, plugins, settings, simulations
from collidium.platform import Platform
from collidium.runtime.failpoints import VARIABLE
from collidium.simulations import DeliveryOptions, Order
from collidium.testing.processes import end_with_parent
from collidium.testing.server import run_command

#: The one account.
NAME = "ada"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Life:
    """A process that orders, cancels if asked to, and follows, as far as its failpoint."""

    failpoint: str
    channel: str = "single_muon"
    cancelled: bool = False
    #: Settings of this process alone.
    overrides: Mapping[str, object] | None = None

    @property
    def name(self) -> str:
        """What distinguishes it from the others."""
        return f"{self.failpoint}:{self.channel}:{self.cancelled}"


def order(number: int, life: Life, token: str) -> tuple[Order, DeliveryOptions]:
    """What a life orders: the same again when it is asked again."""
    ordered = Order(life.channel, events=2, pileup=0, seed=number)
    return ordered, DeliveryOptions(token=token, idempotency_key=life.name)


@asynccontextmanager
async def opened(jobs: Path, chosen: Mapping[str, Any]) -> AsyncIterator[Platform]:
    """A platform whose runner keeps its jobs in a directory."""
    loaded = plugins.load()
    loaded.manager.register(Bringing(Filed(jobs)), name="filed")
    configured = settings.load(
        run_mode="real", runner="filed", burst_requests=1000, unfinished_requests=1000, **chosen
    )
    async with Platform.open(configured, loaded) as platform:
        yield platform


def kill_each(lives: list[Life], jobs: Path, chosen: Mapping[str, object], token: str) -> list[int]:
    """The exit codes of processes that live these lives one after the other."""
    plan = {
        "lives": [asdict(life) for life in lives],
        "jobs": str(jobs),
        "settings": {name: str(value) for name, value in chosen.items()},
        "token": token,
    }
    done = run_command([json.dumps(plan)], os.environ, ROOT, (sys.executable, "-m", __name__))
    assert done.returncode == 0, done.stderr
    codes: list[int] = json.loads(done.stdout)
    return codes


@contextmanager
def follower(jobs: Path, chosen: Mapping[str, object]) -> Iterator[None]:
    """A process that follows while the context lasts."""
    plan = {"jobs": str(jobs), "settings": {name: str(value) for name, value in chosen.items()}}
    process, line = start_announced([sys.executable, "-m", __name__, json.dumps(plan)], ROOT)
    try:
        assert line == "following\n"
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


async def _live(number: int, life: Life, plan: Mapping[str, Any]) -> None:
    chosen = plan["settings"] | (life.overrides or {})
    async with asyncio.timeout(20), opened(Path(plan["jobs"]), chosen) as platform:
        account = await accounts.recognise(NAME, signup_grant=GRANT)
        async with simulations.following(platform):
            placed = await simulations.place(platform, account, *order(number, life, plan["token"]))
            if life.cancelled:
                await reached(placed.request_id, "running")
                await simulations.cancel(platform, placed.request_id, account)
            # Some failpoints are after the end of the request: it follows until it is killed.
            await asyncio.Event().wait()


async def _follow(plan: Mapping[str, Any]) -> None:
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    async with opened(Path(plan["jobs"]), plan["settings"]) as platform, simulations.following(platform):
        _print("following")
        await terminated.wait()


def _import() -> None:
    """What lives import, once for all that are forked: it is most of what they cost."""
    plugins.load()
    # The last is what pyarrow imports where it is installed.
    for name in ("huggingface_hub.hf_api", "asyncpg", "pandas"):
        with suppress(ImportError):
            import_module(name)


def _fork(number: int, life: Life, plan: Mapping[str, Any]) -> int:
    child = os.fork()
    if not child:
        end_with_parent()
        os.environ[VARIABLE] = life.failpoint
        try:
            asyncio.run(_live(number, life, plan))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _main() -> None:
    plan = json.loads(sys.argv[1])
    if "lives" in plan:
        _import()
        lives = [Life(**life) for life in plan["lives"]]
        _print(json.dumps([_fork(number, life, plan) for number, life in enumerate(lives)]))
    else:
        asyncio.run(_follow(plan))


if __name__ == "__main__":
    _main()
