"""Finds all problems of seeding a server before anything is created; creates drafts of challenges.

A challenge with events of its own is a draft, which is not listed, until it has truth and baselines.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collidium import accounts, challenges, simulations
from collidium.challenges import gate, tasklist
from collidium.contracts.task import Task
from collidium.datasets import layout
from collidium.datasets.access import catalogue
from collidium.datasets.catalogue import HubCatalogue
from collidium.errors import CollidiumError, InvalidInput, NotFound
from collidium.hub.client import Hub
from collidium.hub.sources import HubDataset, locate
from collidium.order import Order
from collidium.organising import changes
from collidium.pipelines.choice import BUILT_IN, NONE, choose
from collidium.plugins import DISTRIBUTION
from collidium.presentation.challenges import closing_text
from collidium.records import SplitPreview
from collidium.scoring.truth.parts import ScoredTruth
from collidium.seeding import access
from collidium.seeding.access import ACCOUNT
from collidium.seeding.plan import ChallengeEvents, Source

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.seeding.steps import Seeding

#: Smaller secret seeds could be guessed.
_MIN_SEED: Final = 2**64

#: The actor in the audit log.
_ACTOR: Final = "command"


def tasks_of(platform: Platform, names: Sequence[str]) -> list[Task]:
    """Return the installed tasks of these names, by default the built-in ones.

    Raises InvalidInput for unknown names.
    """
    installed = platform.tasks.things
    if unknown := [name for name in names if name not in installed]:
        raise InvalidInput(f"no such task: {', '.join(unknown)}; there are {', '.join(sorted(installed))}")
    built_in = [name for name, origin in platform.tasks.distributions.items() if origin == DISTRIBUTION]
    return [installed[name] for name in names or sorted(built_in)]


def raise_problems(problems: Sequence[str]) -> None:
    """Raise InvalidInput with all problems, if there are any."""
    if problems:
        raise InvalidInput("; ".join(problems), errors=[{"detail": problem} for problem in problems])


async def problems_of(seeding: Seeding, size: str) -> AsyncIterator[str]:
    """Yield the problems of a run, of a ``size`` or for a challenge. Changes nothing."""
    state, settings = seeding.state, seeding.platform.settings
    if size and state.size != size:
        yield f"this server was seeded with --size {state.size}: continue with that size"
    if seeding.draft is not None:
        async for detail in draft_problems(seeding, seeding.draft):
            yield detail
    if problem := await _account_problem():
        yield problem
    for task in seeding.tasks if seeding.draft is None else ():
        if problem := await _task_problem(seeding, task):
            yield problem
    if problem := _pipeline_problem(seeding):
        yield problem
    free = shutil.disk_usage(settings.data_dir).free
    if free < seeding.bytes:
        yield f"{settings.data_dir} has room for {free / 1e9:.1f} GB, not for {seeding.bytes / 1e9:.1f} GB"
    async for problem in _seed_problems(seeding):
        yield problem
    token = access.saved_token(settings, state, local=seeding.local)
    if problem := await access.hub_problem(settings.hub, token, local=seeding.local):
        yield problem
        return
    # An invalid name is already a problem of the challenge, and the hub would reject the repository.
    if seeding.draft is None or challenges.is_name(seeding.draft.name):
        async for problem in _repository_problems(seeding, token):
            yield problem


async def _account_problem() -> str | None:
    try:
        account = await accounts.find(ACCOUNT)
    except NotFound:
        return None
    if account.banned:
        return f"the account {ACCOUNT} is banned"
    return (
        None if account.baseline else f"the account {ACCOUNT} is a user's: baselines need their own account"
    )


async def _task_problem(seeding: Seeding, task: Task) -> str | None:
    name = task.card.name
    status = await tasklist.status_of(seeding.platform.tasks, name)
    if not status.listed:
        return f"{name} is not listed: run `collidium task add {name}`, or leave it out with --tasks"
    if status.truth_version is not None and f"truth of {name}" not in seeding.state.begun:
        return f"{name} is already scored against other truth: leave it out with --tasks"
    return None


def _pipeline_problem(seeding: Seeding) -> str | None:
    """Return why the pipeline does not run here, if events are to be simulated."""
    simulated = [one for one in seeding.datasets if one.source is None]
    try:
        for one in simulated[:1]:
            order = Order(one.channels[0], one.events, one.pileup)
            choose(BUILT_IN, NONE, order, seeding.platform.plugins.pipelines().get, lambda _: None)
    except CollidiumError as error:
        return error.detail
    return None


async def _seed_problems(seeding: Seeding) -> AsyncIterator[str]:
    for one in seeding.datasets:
        if (text := seeding.state.seeds.get(one.name)) is None:
            continue
        derived = [seeding.state.secret_seed(one.name, channel) for channel in one.channels]
        if int(text) < _MIN_SEED or await simulations.were_ordered([int(text), *derived]):
            yield f"the secret seed of {one.name} is known or short: its events can be reproduced"


async def _repository_problems(seeding: Seeding, token: str) -> AsyncIterator[str]:
    """Yield repositories that this server did not create, whose events may be public."""
    hub = Hub(seeding.platform.settings.hub, token)
    owner = ACCOUNT
    if not seeding.local:
        owner = str((await hub.ask(lambda api: api.whoami()))["name"])
    others = [f"{owner}/{one.name}" for one in seeding.datasets if one.name not in seeding.state.begun]
    existing = await hub.ask(
        lambda api: [repo for repo in others if api.repo_exists(repo, repo_type="dataset")], 300
    )
    for repo in existing:
        yield f"the hub already has a dataset {repo}, whose events may be public: remove it there first"


@dataclass(frozen=True, slots=True)
class Draft:
    """A challenge to create: its fields, and its events."""

    name: str
    fields: Mapping[str, Any]
    events: ChallengeEvents


def find_source(events: ChallengeEvents, hub: str, cache: Path) -> tuple[ChallengeEvents, Source]:
    """Locate the dataset of ``events``, and return it with its commit and config filled in. Blocks.

    Raises InvalidInput for a public repository or too few events, and what
    :func:`~collidium.datasets.list_tables` raises.
    """
    repo, _, revision = events.dataset.partition("@")
    place = locate(repo, endpoint=hub, revision=revision or None)
    with catalogue(place, cache, current=True) as found:
        config = layout.choose(found.sizes, events.config or None)
        count = found.tables(config)[0].events
        if isinstance(found, HubCatalogue) and isinstance(place, HubDataset):
            if not found.repository.private:
                raise InvalidInput(f"{repo} is public: anyone can read the truth of its events")
            place = replace(place, revision=found.repository.commit)
            repo = f"{repo}@{place.revision}"
    if count is not None and count < events.train + events.evaluated:
        raise InvalidInput(f"{repo} has {count} events, not {events.train} and {events.evaluated}")
    return replace(events, dataset=repo, config=config), place


async def draft_problems(seeding: Seeding, draft: Draft) -> AsyncIterator[str]:
    """Yield the problems of creating the challenge. Changes nothing."""
    begun, row = seeding.state.challenges.get(draft.name), await challenges.find(draft.name)
    if begun is not None and begun != asdict(draft.events):
        options = ", ".join(f"{name} {value}" for name, value in begun.items() if value not in ("", None))
        yield f"{draft.name} was begun with {options}: continue with these, or choose another name"
    elif begun is None and row is not None:
        yield f"a challenge {draft.name} already exists"
    if row is None:
        for field, problem in changes.problems_of_new(draft.name, draft.fields):
            yield f"{field}: {problem}"


async def closing_texts(seeding: Seeding) -> AsyncIterator[str]:
    """Yield what the public part closes: challenges that were created of the same events of a dataset."""
    draft = seeding.draft
    if draft is None or (percent := draft.events.public_percent) is None or not draft.events.dataset:
        return
    for name, begun in seeding.state.challenges.items():
        row, events = await challenges.find(name), ChallengeEvents(**begun)
        is_same = replace(events, public_percent=percent) == draft.events
        if name == draft.name or not is_same or row is None or row.truth_version is None:
            continue
        part = row.truth_version.part("public", percent)
        closed = [one.name for one in await gate.closed_by(events.task, draft.name, part)]
        if closed:
            until = draft.fields.get("closes_at")
            yield closing_text(SplitPreview(draft.name, percent, tuple(closed), until))
        return


async def is_prepared(seeding: Seeding, draft: Draft) -> bool:
    """Whether the challenge exists, listed or not."""
    return draft.name in seeding.state.challenges and await challenges.find(draft.name) is not None


async def prepare(seeding: Seeding, draft: Draft) -> None:
    """Create the challenge, without truth and not listed."""
    seeding.state.challenges[draft.name] = asdict(draft.events)
    seeding.state.save()
    await changes.create(
        seeding.platform,
        draft.name,
        draft.events.task,
        draft.fields,
        draft=True,
        actor=_ACTOR,
        http_request_id="",
    )


async def set_truth(draft: Draft, version: ScoredTruth) -> None:
    """Score the challenge against this truth, with its public part."""
    await changes.set_truth(draft.name, version, draft.events.public_percent)


async def is_listed(draft: Draft) -> bool:
    """Whether the challenge is listed."""
    row = await challenges.find(draft.name)
    return row is not None and row.listed


async def publish(draft: Draft) -> None:
    """List the challenge, which opens it now or at its date."""
    await changes.publish(draft.name, actor=_ACTOR)
