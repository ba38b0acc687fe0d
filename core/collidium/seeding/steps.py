"""The steps of seeding. Each is skipped if the hub and the database show that it is done.

Every step is safe to repeat, so that the next run resumes a killed one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from collidium import accounts
from collidium.challenges import tasklist, truth_in_use
from collidium.contracts.task import EventRange, Reconstruction, Task
from collidium.datasets import Dataset, cards, download
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import publish
from collidium.hub.client import Hub, hub_failures
from collidium.hub.sources import HubDataset
from collidium.order import Order
from collidium.pipelines.choice import BUILT_IN, NONE
from collidium.pipelines.simulating import RunOptions, simulate
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import in_thread
from collidium.seeding import access, baselines, checks, plan
from collidium.seeding.access import ACCOUNT, SeedState
from collidium.seeding.plan import DatasetPlan, Size, copy_events, mix_channels
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.pipelines.stages import Progress as StageProgress
    from collidium.platform import Platform
    from collidium.seeding.checks import Draft

#: Called with the title of the step, the fraction of the run that is done, and the remaining seconds.
Report = Callable[[str, float, float], None]
#: From this fraction on, the remaining time is estimated from the elapsed time.
MEASURED: Final = 0.1


async def is_published(seeding: Seeding, one: DatasetPlan) -> bool:
    """Whether the hub has the dataset. If so, delete its intermediate files."""
    if one.name not in seeding.state.published:
        return False
    await asyncio.to_thread(shutil.rmtree, _work(seeding, one), ignore_errors=True)
    repo, hub = seeding.repo(one.name), seeding.hub
    with hub_failures(hub.endpoint):
        return await hub.ask(lambda api: bool(api.repo_exists(repo, repo_type="dataset")))


async def make(seeding: Seeding, one: DatasetPlan) -> None:
    """Make and publish the events. The truth of an evaluation set stays on this machine."""
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
        platform_tag=seeding.platform.settings.tag,
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
    assert source is not None  # noqa: S101 -- checked by the caller
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
                order,
                directory,
                RunOptions(pipeline=BUILT_IN, runtime=NONE),
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
            sources,
            mixed,
            one.events,
            config=one.config,
            first_event=one.first_event,
            seed=state.secret_seed(one.name, "order"),
        )
        await asyncio.to_thread(mixing)
    return mixed


def _stage(seeding: Seeding, number: int, of: int, progress: StageProgress) -> None:
    stages = (progress.number - 1 + progress.fraction) / progress.of
    seeding.report_fraction((number + stages) / of)


def _card(seeding: Seeding, one: DatasetPlan) -> str:
    """Return the card of an evaluation set, without its seed."""
    pipeline = seeding.platform.plugins.pipelines().things.get(BUILT_IN)
    facts = {"config": one.config, "pileup": one.pileup}
    if one.source is None and pipeline is not None:
        facts["channels"] = ", ".join(one.channels)
        facts["pipeline"] = f"{pipeline.name}, version {pipeline.version}"
        facts |= pipeline.facts if one.mixed else pipeline.facts_of(one.channels[0])
    return (
        f"# {one.name}\n\n{one.origin} Evaluation events: their truth is withheld.\n\n"
        f"{cards.table(('', ''), [(name, str(fact)) for name, fact in facts.items()])}\n"
    )


def _events(directory: Path, one: DatasetPlan) -> EventRange:
    dataset = Dataset(directory, one.config)
    table = dataset.configs()[one.config][0]
    ids = dataset.table(table).event_ids
    return EventRange(int(ids[0]), int(ids[-1]) + 1)


@dataclass(frozen=True, slots=True)
class SeedStep:
    """A step of a run."""

    title: str
    #: The expected duration.
    seconds: float
    is_done: Callable[[], Awaitable[bool]]
    do: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Seeding:
    """A run that seeds a server. The setting ``hub_url`` is the hub to publish on."""

    platform: Platform
    size: Size
    tasks: Sequence[Task]
    state: SeedState
    #: Whether the hub is the server's own.
    local: bool
    report: Report
    #: The challenge to create; None: seed the tasks' own challenges.
    draft: Draft | None = None
    #: Cores that the durations of simulations are planned with.
    cores: int = field(default_factory=lambda: min(len(os.sched_getaffinity(0)), 8))
    #: Called with the fraction of the current step that is done.
    report_fraction: Callable[[float], None] = lambda _: None
    _token: str = ""

    @property
    def hub(self) -> Hub:
        """The hub to publish on, with the account's token."""
        return Hub(self.platform.settings.hub, self._token)

    @property
    def datasets(self) -> list[DatasetPlan]:
        """The datasets that the tasks are scored on, and their training sets."""
        scored = [self.size.of_task(task.card) for task in self.tasks]
        return [one for one in self.size.datasets if any(one is of or one.trains_for(of) for of in scored)]

    @property
    def bytes(self) -> int:
        """The maximum disk space that the missing datasets need."""
        kept = peak = 0
        for one in self.datasets:
            if one.name not in self.state.published:
                kept += one.bytes
                peak = max(peak, kept + one.work_bytes)
        return peak

    def steps(self) -> Iterator[SeedStep]:
        """Yield all steps in order."""
        if self.draft is not None:
            yield SeedStep(
                f"Preparing {self.draft.name}",
                0,
                partial(checks.is_prepared, self, self.draft),
                partial(checks.prepare, self, self.draft),
            )
        for one in self.datasets:
            yield SeedStep(
                f"Making {one.name}",
                self.size.scoring_seconds + one.seconds / self.cores,
                partial(is_published, self, one),
                partial(make, self, one),
            )
        for task in self.tasks:
            yield from self._steps_of(task)
        if self.draft is not None:
            yield SeedStep(
                f"Opening {self.draft.name}",
                0,
                partial(checks.is_listed, self.draft),
                partial(checks.publish, self.draft),
            )

    def _steps_of(self, task: Task) -> Iterator[SeedStep]:
        name = self.challenge(task)
        yield SeedStep(
            f"Importing truth of {name}",
            self.size.scoring_seconds,
            partial(self.has_truth, task),
            partial(self._import, task),
        )
        for baseline in self.baselines(task):
            yield SeedStep(
                f"Submitting {baseline} to {name}",
                self.size.seconds_of(task.card),
                partial(baselines.is_submitted, self, task, baseline),
                partial(baselines.submit_baseline, self, task, baseline),
            )
        for example in baselines.model_examples(self, task):
            yield SeedStep(
                f"Sending the model {example} to {name}",
                self.size.scoring_seconds,
                partial(baselines.is_model_sent, self, task, example),
                partial(baselines.send_model, self, task, example),
            )

    def baselines(self, task: Task) -> Mapping[str, Reconstruction | None]:
        """Return the baselines of a task; if it has none, one that measures reading.

        Baselines of plugins are used only for simulated events, because they depend on the detector.
        """
        found: dict[str, Reconstruction | None] = {**task.baselines()}
        if self.size.of_task(task.card).source is None:
            others = self.platform.plugins.baselines().things.values()
            found |= {other.name: other.reconstruct for other in others if other.task == task.card.name}
        return found or {"load": None}

    def notes(self) -> Iterator[str]:
        """Yield notes on a challenge: its baselines, missing ones, and metrics that may have no value."""
        if self.draft is None:
            return
        events = self.draft.events
        for task in self.tasks:
            yield f"Baselines of {task.card.name}: {', '.join(self.baselines(task))}"
            for needed, names in groupby(task.missing_baselines().items(), key=itemgetter(1)):
                yield f"pip install '{needed}' adds {', '.join(name for name, _ in names)}"
            evaluated = sum(len(one.channels) for one in self.datasets if one.evaluated) * events.evaluated
            public = evaluated * (events.public_percent or 100) // 100
            fewest = min(public, evaluated - public or public)
            for metric in task.card.metrics:
                if fewest < metric.events_needed:
                    scored = f"{fewest:,} are scored{' in one part' if fewest < evaluated else ''}"
                    needs = f"{metric.events_needed:,} needed"
                    yield f"{metric.name} may have no value: {scored}, of about {needs}"

    async def run(self) -> int:
        """Run the missing steps, and return their number. Raises CollidiumError."""
        self._token = await access.sign_in(self.platform.settings, self.state, local=self.local)
        await accounts.mark_baseline(ACCOUNT)
        reached("seed.signed_in")
        steps = [*self.steps()]
        done = [await step.is_done() for step in steps]
        todo = [step for step, is_done in zip(steps, done, strict=True) if not is_done]
        total = sum(step.seconds for step in todo) or 1
        began, finished = monotonic(), 0.0
        for step in todo:

            def show(fraction: float, step: SeedStep = step, before: float = finished) -> None:
                passed = before + fraction * step.seconds
                pace = (monotonic() - began) / passed if passed > MEASURED * total else 1.0
                self.report(step.title, passed / total, (total - passed) * pace)

            show(0.0)
            self.report_fraction = show
            await step.do()
            finished += step.seconds
        return len(todo)

    def repo(self, name: str) -> str:
        """Return the full name of a repository."""
        return self.state.published[name]["repo"]

    def truth(self, one: DatasetPlan) -> Path:
        """Return the directory of the truth of an evaluation set."""
        return self.state.directory / "truth" / one.name

    # -- truth --------------------------------------------------------------------------------------------

    def challenge(self, task: Task) -> str:
        """Return the challenge that baselines are submitted to."""
        return task.card.name if self.draft is None else self.draft.name

    def evaluated(self, task: Task) -> tuple[DatasetPlan, EventRange]:
        """Return the dataset that a task is scored on, and the events."""
        one = self.size.of_task(task.card)
        return one, self.size.events_of(task.card, self.state.events_of(one.name))

    async def truth_version(self, task: Task) -> str | None:
        """Return the truth that submissions are currently scored against."""
        return (await tasklist.status_of(self.platform.tasks, self.challenge(task))).truth_version

    async def has_truth(self, task: Task) -> bool:
        """Whether submissions are scored on the events of the plan."""
        one = self.size.of_task(task.card)
        if one.name not in self.state.published:
            return False
        version = await self.truth_version(task)
        if version is None:
            return False
        truth = await registry.find(task.card.name, version)
        return (truth.dataset, truth.events) == (one.config, self.evaluated(task)[1])

    async def _import(self, task: Task) -> None:
        self.state.begin(f"truth of {self.challenge(task)}")
        one, events = self.evaluated(task)
        truth = await truth_in_use.import_truth(
            self.platform,
            task.card.name,
            str(self.truth(one)) if one.evaluated else self.repo(one.name),
            config=one.config,
            events=events,
            inputs=self.repo(one.name) if one.evaluated else None,
            train=self.repo(one.train) if one.train else None,
            token=self._token,
            current=self.draft is None,
        )
        if self.draft is not None:
            await checks.set_truth(self.draft, truth.version)
        reached("seed.imported")
