"""Makes the datasets of a plan: simulated, or taken from elsewhere; then published, evaluation sets blind."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset, cards, download
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import publish
from collidium.hub.client import hub_failures
from collidium.hub.sources import HubDataset
from collidium.order import Order
from collidium.pipelines.choice import BUILT_IN, NONE
from collidium.pipelines.simulating import RunOptions, simulate
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import in_thread
from collidium.seeding import plan
from collidium.seeding.plan import DatasetPlan, copy_events, mix_channels

if TYPE_CHECKING:
    from collidium.pipelines.stages import Progress as StageProgress
    from collidium.seeding.steps import Seeding


async def is_published(seeding: Seeding, one: DatasetPlan) -> bool:
    """Whether the hub has the dataset; what it was made from goes then."""
    if one.name not in seeding.state.published:
        return False
    await asyncio.to_thread(shutil.rmtree, _work(seeding, one), ignore_errors=True)
    repo, hub = seeding.repo(one.name), seeding.hub
    with hub_failures(hub.endpoint):
        return await hub.ask(lambda api: bool(api.repo_exists(repo, repo_type="dataset")))


async def make(seeding: Seeding, one: DatasetPlan) -> None:
    """Make the events, and publish them; the truth of an evaluation set stays here."""
    work = _work(seeding, one)
    made = await (_simulated(seeding, one) if one.source is None else _taken(seeding, one))
    reached("seed.made")
    seeding.state.begin(one.name)
    card, events = work / "card.md", _events(made, one)
    await asyncio.to_thread(card.write_text, _card(seeding, one), "utf-8")
    publication = Publication(
        directory=made,
        repo=one.name,
        config=one.config,
        card=card if one.evaluated else None,
        withholding=Withholding(events, seeding.truth(one)) if one.evaluated else None,
        platform_tag=seeding.platform.settings.platform_tag,
    )
    published = await publish(publication, seeding.hub)
    reached("seed.published")
    seeding.state.published[one.name] = {
        "repo": published.repo,
        "revision": published.revision,
        "events": str(events),
    }
    seeding.state.save()
    await asyncio.to_thread(shutil.rmtree, work)


def _work(seeding: Seeding, one: DatasetPlan) -> Path:
    return seeding.state.directory / "work" / one.name


async def _taken(seeding: Seeding, one: DatasetPlan) -> Path:
    work, source = _work(seeding, one), one.source
    await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
    if isinstance(source, HubDataset):
        cache = seeding.state.directory / "cache"
        source = (await asyncio.to_thread(download, source, one.config, cache=cache)).directory
    assert source is not None  # noqa: S101 -- the caller's
    places = EventRange(one.first_taken, one.first_taken + one.events)
    return await asyncio.to_thread(copy_events, source, work / "events", places, one.config)


async def _simulated(seeding: Seeding, one: DatasetPlan) -> Path:
    sources, state = [], seeding.state
    for number, channel in enumerate(one.channels):
        seed = state.secret_seed(one.name, channel) if one.evaluated else plan.PUBLIC_SEED
        order = Order(channel, one.events, one.pileup, seed)
        directory = _work(seeding, one) / channel
        await in_thread(
            partial(
                simulate,
                *(order, directory, RunOptions(pipeline=BUILT_IN, runtime=NONE)),
                get=seeding.platform.plugins.pipelines().get,
                report=partial(_stage, seeding, number, len(one.channels)),
                note=lambda _: None,
                first_event=0 if one.mixed else one.first_event,
            ),
            "seed",
        )
        sources.append(directory)
    if not one.mixed:
        return sources[0]
    mixed = _work(seeding, one) / "mix"
    if not mixed.exists():
        mixing = partial(
            mix_channels,
            *(sources, mixed, one.events),
            config=one.config,
            first_event=one.first_event,
            seed=state.secret_seed(one.name, "order"),
        )
        await asyncio.to_thread(mixing)
    return mixed


def _stage(seeding: Seeding, number: int, of: int, progress: StageProgress) -> None:
    stages = (progress.number - 1 + progress.fraction) / progress.of
    seeding.within((number + stages) / of)


def _card(seeding: Seeding, one: DatasetPlan) -> str:
    """What the events of an evaluation set are, but for their seed."""
    pipeline = seeding.platform.plugins.pipelines().things.get(BUILT_IN)
    facts = {"config": one.config, "pileup": one.pileup}
    if one.source is None and pipeline is not None:
        facts["channels"] = ", ".join(one.channels)
        facts["pipeline"] = f"{pipeline.name}, version {pipeline.version}"
        facts |= pipeline.facts if one.mixed else pipeline.facts_of(one.channels[0])
    return (
        f"# {one.name}\n\n{one.origin} They are scored: what made their hits is withheld.\n\n"
        f"{cards.table(('', ''), [(name, str(fact)) for name, fact in facts.items()])}\n"
    )


def _events(directory: Path, one: DatasetPlan) -> EventRange:
    dataset = Dataset(directory, one.config)
    table = dataset.configs()[one.config][0]
    ids = dataset.table(table).event_ids
    return EventRange(int(ids[0]), int(ids[-1]) + 1)
