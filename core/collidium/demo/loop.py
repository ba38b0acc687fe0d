"""The demo's steps, from a fresh machine to a leaderboard and events that were ordered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from collidium import plugins
from collidium.client import Account, Client, Page, Place, Receipt, TaskCard, Transaction, write_predictions
from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset, HubDataset, fetch
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import publish as publish_dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.demo.child import Machine
from collidium.demo.orders import Ordered, choose, order_events
from collidium.errors import CollidiumError, ConfigurationError
from collidium.hub import client as hub_client
from collidium.hub.client import Hub

TASK = "tracking"
REPO = "collidium/odd-ttbar"
CONFIG = "ttbar_pu0"
EVALUATION = EventRange(3, 5)

#: Called with what happens next.
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A baseline that was submitted, and by whom."""

    baseline: str
    hub_username: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo shows."""

    url: str
    #: The local hub at the root of its own port.
    hub_url: str
    card: TaskCard
    submissions: tuple[Submitted, ...]
    orders: tuple[Ordered, ...]
    accounts: tuple[Account, ...]
    ledger: dict[str, tuple[Transaction, ...]]
    leaderboard: tuple[Place, ...]
    #: A file with a token for each account.
    tokens: dict[str, Path]


@contextmanager
def demonstrated(
    data_dir: Path, port: int, runner: Literal["auto", "local", "mock"], report: Report
) -> Iterator[Outcome]:
    """Go through the whole loop; the server runs until the context ends. Raises CollidiumError."""
    loaded = plugins.load()
    computing = choose(runner, loaded)
    machine = Machine(data_dir, computing.settings)
    report("Making two accounts on the local hub")
    tokens = {name: _add_user(machine, name) for name in ("collidium", "alice")}
    report("Starting the server on embedded defaults")
    with machine.server(port) as (url, hub):
        report(f"Publishing five real events as {REPO} on the local hub, {EVALUATION} without truth")
        truth = data_dir / "withheld"
        publish(EVENTS_DIRECTORY, REPO, CONFIG, EVALUATION, truth, endpoint=hub, token=tokens["collidium"])
        report(f"Importing truth for task {TASK}: events {EVALUATION}")
        machine.command(
            "truth",
            "import",
            TASK,
            "--from",
            str(truth),
            "--config",
            CONFIG,
            "--events",
            str(EVALUATION),
            "--json",
        )
        task = loaded.tasks().get(TASK)
        report("Downloading the hits of the eval events, as any user")
        hits = _download(task, HubDataset(REPO, hub, token=tokens["alice"]), data_dir / "downloads")
        submissions = tuple(_submit_baselines(task, hits, url, tokens, data_dir, report))
        orders = order_events(url, tokens, report, computing)
        report("Auditing the ledger and the totals of usage")
        machine.command("ledger", "audit")
        yield _outcome(url, hub, tokens, submissions, orders, data_dir)


def open_other_tasks(data_dir: Path, url: str) -> None:
    """Open the other built-in tasks on small sets of events, with their baselines. Raises CollidiumError."""
    origins = plugins.load().tasks().distributions
    names = [name for name, origin in origins.items() if origin == plugins.DISTRIBUTION and name != TASK]
    machine = Machine(data_dir, {"PLATFORM_BACKEND": url})
    machine.command("seed", "--size", "demo", "--tasks", ",".join(names))


def _add_user(machine: Machine, name: str) -> str:
    token = machine.command("user", "add", name).strip().splitlines()[-1]
    file = _token_file(machine.data_dir, name)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as stream:
        stream.write(token + "\n")
    return token


def _token_file(data_dir: Path, name: str) -> Path:
    return data_dir / f"{name}.token"


def _download(task: Task, source: HubDataset, cache: Path) -> dict[str, pa.Table]:
    """The task's inputs in the eval events, without the columns that were left empty there."""
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
    """Submit two baselines: the simplest by the dataset's maker, a better one by a physicist."""
    baselines = task.baselines()
    if not baselines:
        raise ConfigurationError(f"task {task.card.name!r} shows no baselines")
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
) -> Outcome:
    accounts, ledger = [], {}
    for name, token in tokens.items():
        with Client(url, token) as client:
            accounts.append(client.me())
            ledger[name] = client.transactions().items
    with Client(url) as client:
        card, board = client.task(TASK), client.leaderboard(TASK)
    return Outcome(
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
    """The leaderboard; raises CollidiumError unless every submission is on it."""
    missing = {s.receipt.submission_id for s in submissions} - {place.submission_id for place in board}
    if missing:
        raise CollidiumError(f"{len(missing)} submissions are not on the leaderboard")
    return board.items


def publish(
    events: Path, repo: str, config: str, evaluation: EventRange, truth: Path, *, endpoint: str, token: str
) -> str:
    """Make dataset ``repo`` on the hub from a directory of tables; returns the commit.

    The truth of the events to be scored goes to the directory ``truth``.
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
