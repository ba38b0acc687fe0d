"""The steps of the demo, from a new data directory to a leaderboard and ordered events."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from collidium import plugins
from collidium.client import (
    Account,
    Client,
    Page,
    Place,
    Receipt,
    SimulationRequest,
    TaskCard,
    Transaction,
    write_predictions,
)
from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset, HubDataset, fetch
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import publish as publish_dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.demo.child import DemoMachine
from collidium.errors import CollidiumError, ConfigurationError
from collidium.hub import client as hub_client
from collidium.hub import offline
from collidium.hub.client import Hub
from collidium.order import PRESETS
from collidium.pipelines import choice
from collidium.pipelines.choice import BUILT_IN, NONE
from collidium.plugins import Plugins

TASK = "tracking"
REPO = "collidium/odd-ttbar"
CONFIG = "ttbar_pu0"
EVALUATION = EventRange(3, 5)

#: Called with a description of the next step.
Report = Callable[[str], None]

#: A larger preset, so that its cancellation refunds credits.
CANCELLED_PRESET: Final = "ttbar-dev"


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submitted baseline, and the account that submitted it."""

    baseline: str
    hub_username: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class LoopOutcome:
    """The results of the demo."""

    url: str
    #: The local hub at its own port.
    hub_url: str
    card: TaskCard
    submissions: tuple[Submitted, ...]
    orders: tuple[Ordered, ...]
    accounts: tuple[Account, ...]
    ledger: dict[str, tuple[Transaction, ...]]
    leaderboard: tuple[Place, ...]
    #: The file with the token of each account.
    tokens: dict[str, Path]


@contextmanager
def run_demo(
    data_dir: Path, port: int, runner: Literal["auto", "local", "mock"], report: Report
) -> Iterator[LoopOutcome]:
    """Run all steps. The server runs until the context ends. Raises CollidiumError."""
    offline.ignore()  # its hub is its own
    loaded = plugins.load()
    chosen = choose_runner(runner, loaded)
    machine = DemoMachine(data_dir, chosen.settings)
    report("Creating two accounts on the local hub")
    tokens = {name: _add_user(machine, name) for name in ("collidium", "alice")}
    report("Starting the server with default settings")
    with machine.server(port) as (url, hub):
        report(f"Publishing five real events as {REPO} on the local hub, {EVALUATION} without truth")
        truth = data_dir / "withheld"
        publish(EVENTS_DIRECTORY, REPO, CONFIG, EVALUATION, truth, endpoint=hub, token=tokens["collidium"])
        report(f"Importing truth for task {TASK}: events {EVALUATION}")
        source = ("--from", str(truth), "--config", CONFIG, "--events", str(EVALUATION))
        machine.command("truth", "import", TASK, *source)
        task = loaded.tasks().get(TASK)
        report("Downloading the hits of the evaluation events")
        hits = _download(task, HubDataset(REPO, hub, token=tokens["alice"]), data_dir / "downloads")
        submissions = tuple(_submit_baselines(task, hits, url, tokens, data_dir, report))
        orders = order_events(url, tokens, report, chosen)
        report("Auditing the ledger and the totals of usage")
        machine.command("ledger", "audit")
        yield _outcome(url, hub, tokens, submissions, orders, data_dir)


def open_other_tasks(data_dir: Path, url: str) -> None:
    """Open the other built-in tasks on small datasets, with their baselines. Raises CollidiumError."""
    origins = plugins.load().tasks().distributions
    names = [name for name, origin in origins.items() if origin == plugins.DISTRIBUTION and name != TASK]
    machine = DemoMachine(data_dir, {"PLATFORM_BACKEND": url})
    machine.command("seed", "--size", "demo", "--tasks", ",".join(names))


def _add_user(machine: DemoMachine, name: str) -> str:
    token = machine.command("user", "add", name).strip().splitlines()[-1]
    file = _token_file(machine.data_dir, name)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as stream:
        stream.write(token + "\n")
    return token


def _token_file(data_dir: Path, name: str) -> Path:
    return data_dir / f"{name}.token"


def _download(task: Task, source: HubDataset, cache: Path) -> dict[str, pa.Table]:
    """Download the task's inputs in the evaluation events, without columns that are empty there."""
    hub_client.prepare()
    inputs = task.card.inputs
    fetched = asyncio.run(fetch(source, inputs, cache, config=CONFIG, events=EVALUATION))
    blocks = [tables for _, tables in Dataset(fetched.directory, CONFIG).read(inputs, EVALUATION)]
    return {name: _filled(pa.concat_tables([block[name] for block in blocks])) for name in inputs}


def _filled(table: pa.Table) -> pa.Table:
    return table.select([name for name in table.column_names if table[name].null_count < len(table)])


def _submit_baselines(
    task: Task, hits: dict[str, pa.Table], url: str, tokens: dict[str, str], data_dir: Path, report: Report
) -> Iterator[Submitted]:
    """Submit two baselines, the first one as ``collidium``, the second one as ``alice``."""
    baselines = task.baselines()
    if not baselines:
        raise ConfigurationError(f"task {task.card.name!r} has no baselines")
    for number, (name, reconstruct) in enumerate(list(baselines.items())[:2]):
        user = "collidium" if number == 0 else "alice"
        report(f"Reconstructing with the {name} baseline")
        path = data_dir / f"{name}.parquet"
        write_predictions(reconstruct(hits), path)
        report(f"Submitting it as {user}")
        with Client(url, tokens[user]) as client:
            yield Submitted(name, user, client.submit(task.card.name, path))


def _outcome(
    url: str,
    hub_url: str,
    tokens: dict[str, str],
    submissions: tuple[Submitted, ...],
    orders: tuple[Ordered, ...],
    data_dir: Path,
) -> LoopOutcome:
    accounts, ledger = [], {}
    for name, token in tokens.items():
        with Client(url, token) as client:
            accounts.append(client.me())
            ledger[name] = client.transactions().items
    with Client(url) as client:
        card, board = client.task(TASK), client.leaderboard(TASK)
    return LoopOutcome(
        url=url,
        hub_url=hub_url,
        card=card,
        submissions=submissions,
        orders=orders,
        accounts=tuple(accounts),
        ledger=ledger,
        leaderboard=_complete(board, submissions),
        tokens={name: _token_file(data_dir, name) for name in tokens},
    )


def _complete(board: Page[Place], submissions: tuple[Submitted, ...]) -> tuple[Place, ...]:
    """Return the places of the leaderboard. Raises CollidiumError if a submission is missing."""
    missing = {s.receipt.submission_id for s in submissions} - {place.submission_id for place in board}
    if missing:
        raise CollidiumError(f"{len(missing)} submissions are not on the leaderboard")
    return board.items


def publish(
    events: Path, repo: str, config: str, evaluation: EventRange, truth: Path, *, endpoint: str, token: str
) -> str:
    """Publish a directory of tables as dataset ``repo``, and return the commit.

    The truth of the evaluation events is written to the directory ``truth``.
    """
    publication = Publication(
        events,
        repo,
        config=config,
        message="Five real events",
        card=events.parent / "README.md",
        withholding=Withholding(evaluation, truth),
    )
    return asyncio.run(publish_dataset(publication, Hub(endpoint, token))).revision


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of an account, and its request: an earlier one if that has the same events."""

    by: str
    preset: str
    request: SimulationRequest


def order_events(
    url: str, tokens: Mapping[str, str], report: Report, runner: DemoRunner
) -> tuple[Ordered, ...]:
    """Order events, order the same again, and cancel an order. Raises CollidiumError if that fails."""
    with Client(url, tokens["alice"]) as alice, Client(url, tokens["collidium"]) as other:
        report(f"Ordering events as alice: preset {PRESET}, {runner.description}")
        first = _ended("completed", alice, alice.simulate(preset=PRESET), report, runner)
        report("Ordering the same events as collidium, who gets the existing ones")
        again = other.simulate(preset=PRESET)
        if not again.cached or again.request_id != first.request_id:
            raise CollidiumError("the second order did not return the request of the first")
        report(f"Ordering preset {CANCELLED_PRESET} as alice, and cancelling it")
        third = alice.cancel(alice.simulate(preset=CANCELLED_PRESET).request_id)
        third = _ended("cancelled", alice, third, report, runner)
    return (
        Ordered("alice", PRESET, first),
        Ordered("collidium", PRESET, again),
        Ordered("alice", CANCELLED_PRESET, third),
    )


def _ended(
    expected: str,
    client: Client,
    request: SimulationRequest,
    report: Report,
    runner: DemoRunner,
) -> SimulationRequest:
    """Wait until a request ends, and report its states."""
    seen_states = []

    def show(seen: SimulationRequest) -> None:
        if seen.state not in seen_states:
            seen_states.append(seen.state)
            report(f"Request {seen.request_id} is {seen.state}")

    show(request)
    ended = client.wait(request.request_id, timeout=runner.timeout_seconds, on_change=show)
    if ended.state != expected:
        raise CollidiumError(f"request {ended.request_id} is {ended.state}, not {expected}: {ended.reason}")
    return ended


#: The preset of the computed events.
PRESET: Final = "ttbar-quick"


@dataclass(frozen=True, slots=True)
class DemoRunner:
    """How the demo uses a runner."""

    #: Settings of the server.
    settings: Mapping[str, str]
    #: Shown with an order.
    description: str
    #: Maximum time of an order.
    timeout_seconds: float


MOCK: Final = DemoRunner({}, "from the mock runner", 60.0)
#: Jobs have full priority, because the user waits for them.
LOCAL: Final = DemoRunner(
    {"PLATFORM_RUN_MODE": "real", "PLATFORM_RUNNER": "local", "PLATFORM_LOCAL_NICENESS": "0"},
    f"computed on this machine by the pipeline {BUILT_IN}",
    600.0,
)


def choose_runner(runner: Literal["auto", "local", "mock"], loaded: Plugins) -> DemoRunner:
    """Return the chosen runner; ``auto``: the local one if it runs here, else the mock runner.

    Raises CollidiumError if ``local`` was chosen and does not run here.
    """
    if runner == "mock":
        return MOCK
    try:
        _require_pipeline(loaded)
    except CollidiumError:
        if runner == "local":
            raise
        return MOCK
    return LOCAL


def _require_pipeline(loaded: Plugins) -> None:
    if sys.platform != "linux":
        raise ConfigurationError("the runner local needs Linux")
    choice.choose(BUILT_IN, NONE, PRESETS[PRESET], loaded.pipelines().get, lambda _: None)
