"""CPU of withdrawals, bans and previews of disqualifications, and what /healthz waits meanwhile.

    python -m perf standing

A challenge has 1,000, 10,000 and 34,000 submissions by a tenth as many accounts (perf/history_seed.py). *One
of many* is a submission that raised no best and earned nothing, *a best* one that holds one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
from api import delay_of_call
from history_seed import CARD, OTHER, QUICK_SIZES, QUICK_TURNS, TURNS, Seeded, seeded
from measuring import Figure, call, cpu_seconds, milliseconds, on_both_databases

from collidium.testing.server import ServerProcess

SIZES = 1_000, 10_000, 34_000
#: Withdrawals of one of many in a turn.
WITHDRAWN = 5


@contextmanager
def health(server: ServerProcess) -> Iterator[list[float]]:
    """Milliseconds of each call of /healthz within the context, but for waiting for a core."""
    delays: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.base_url, trust_env=False, timeout=60) as client:
            client.get("/healthz")
            while not done.is_set():
                delays.append(delay_of_call(client, server.pid).own * 1000)
                time.sleep(0.005)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.2)
    try:
        yield delays
    finally:
        done.set()
        asking.join()


def acts(made: Seeded) -> dict[str, tuple[int, Callable[[int], httpx.Response]]]:
    """By name, how often in a turn it is called, and the call."""
    client = httpx.Client(base_url=made.server.base_url, trust_env=False, timeout=600)
    own, admin = {"Authorization": f"Bearer {made.token}"}, {"X-Admin-Token": made.server.admin_token}
    standing = f"/admin/challenges/{CARD.name}/submissions"

    def withdraw(ids: Sequence[str]) -> Callable[[int], httpx.Response]:
        return lambda number: client.post(f"/v1/submissions/{ids[number]}/withdraw", headers=own)

    def ban(banned: bool) -> Callable[[int], httpx.Response]:
        body = {"hub_username": OTHER, "banned": banned}
        return lambda _: client.post("/admin/ban", json=body, headers=admin)

    return {
        "withdraw one of many": (WITHDRAWN, withdraw(made.many)),
        "preview a disqualification": (
            1,
            lambda _: client.get(f"{standing}/{made.bests[0]}/standing", headers=admin),
        ),
        "withdraw a best": (1, withdraw(made.bests)),
        "ban": (1, ban(True)),
        "unban": (1, ban(False)),
    }


def measure(
    kind: str, directory: Path, url: str | None, quick: bool, *, size: int, turns: int
) -> Iterator[Figure]:
    taken: dict[str, tuple[list[float], list[float]]] = {}
    with seeded(directory, url, size) as made:
        # Withdrawals first: a submission that a ban lets earn credits cannot be withdrawn.
        steps = list(acts(made).items())
        order = [(turn, [step]) for step in steps[:3] for turn in range(turns)]
        for turn, some in [*order, *((turn, steps[3:]) for turn in range(turns))]:
            control = milliseconds(made.plain, call("/"), range(100))
            for name, (count, act) in some:
                before = cpu_seconds(made.server.pid)
                for number in range(turn * count, (turn + 1) * count):
                    answer = act(number)
                    assert answer.status_code == 200, answer.text
                values, controls = taken.setdefault(name, ([], []))
                values.append((cpu_seconds(made.server.pid) - before) / count * 1000)
                controls.append(control)
        with health(made.server) as delays:
            for _, (_, act) in steps[3:]:
                act(0)
        taken["longest /healthz, ban and unban"] = [max(delays)], [control]
    for name, (values, controls) in taken.items():
        yield Figure(f"{name}, {size:,} submissions, {kind}", values, controls)


def figures(quick: bool) -> Iterator[Figure]:
    turns = QUICK_TURNS if quick else TURNS
    for size in QUICK_SIZES if quick else SIZES:
        sized = partial(measure, size=size, turns=turns)
        yield from on_both_databases(sized, quick)
