"""The steps of seeding: each does its work unless the hub and the database show that it is done.

Every step is safe to repeat, so a run that was killed anywhere is resumed by the next one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pyarrow as pa

from collidium import accounts
from collidium.benchmarks import tasklist
from collidium.benchmarks.submissions import reading, submitting
from collidium.benchmarks.submissions.links import Claim
from collidium.benchmarks.truth import truth_versions
from collidium.client import write_predictions
from collidium.contracts.task import EventRange, Reconstruction, Task
from collidium.datasets import Dataset, cards, download
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.public_part import without_truth
from collidium.datasets.publishing.publication import publish
from collidium.errors import CollidiumError
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.hub.client import Hub, hub_failures
from collidium.hub.sources import HubDataset
from collidium.order import Order
from collidium.pipelines.choice import BUILT_IN, NONE
from collidium.pipelines.simulating import RunOptions, simulate
from collidium.pipelines.stages import Progress as StageProgress
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import single_line
from collidium.runtime.waiting import in_thread
from collidium.scoring.bench import loaders
from collidium.scoring.bench.data_loading import Slice, time_slice
from collidium.seeding import access, plan
from collidium.seeding.access import ACCOUNT
from collidium.seeding.events import copy_events, mix_channels
from collidium.seeding.plan import DatasetPlan, Size
from collidium.seeding.state import State

if TYPE_CHECKING:
    from collidium.platform import Platform

#: Called with what is being done, the fraction that is done of all, and the seconds that are left.
Report = Callable[[str, float, float], None]
#: How often reading is timed.
_READINGS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the work."""

    title: str
    #: That it is expected to take.
    seconds: float
    is_done: Callable[[], Awaitable[bool]]
    do: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Seeding:
    """A server that is being seeded; its setting ``hub_url`` is the hub that is published on."""

    platform: Platform
    size: Size
    tasks: Sequence[Task]
    state: State
    #: Whether the hub is the server's own.
    local: bool
    report: Report
    _token: str = ""
    _within: Callable[[float], None] = lambda _: None

    @property
    def datasets(self) -> list[DatasetPlan]:
        """The training sets, and the evaluation sets of the tasks."""
        needed = {self.size.of_task(task.card).name for task in self.tasks}
        return [one for one in self.size.datasets if one.name in needed or not one.evaluated]

    @property
    def bytes(self) -> int:
        """Bytes on disk that what is missing takes at most, at one time."""
        kept = peak = 0
        for one in self.datasets:
            if one.name not in self.state.published:
                kept += one.bytes
                peak = max(peak, kept + one.work_bytes)
        return peak

    def steps(self) -> Iterator[Step]:
        """All steps in their order."""
        cores = min(len(os.sched_getaffinity(0)), 8)
        for one in self.datasets:
            yield Step(
                f"Making {one.name}",
                plan.SCORING_SECONDS + one.seconds / cores,
                partial(self._is_published, one),
                partial(self._make, one),
            )
        for task in self.tasks:
            name = task.card.name
            seconds = self.size.seconds_of(task.card)
            yield Step(
                f"Importing truth of {name}",
                plan.SCORING_SECONDS,
                partial(self._has_truth, task),
                partial(self._import, task),
            )
            for baseline in self.baselines(task):
                yield Step(
                    f"Submitting {baseline} to {name}",
                    seconds,
                    partial(self._is_submitted, task, baseline),
                    partial(self._submit, task, baseline),
                )

    def baselines(self, task: Task) -> Mapping[str, Reconstruction | None]:
        """The baselines of a task; one that times reading where there is none.

        Those of plugins are for simulated events: they know the detector that a pipeline models.
        """
        found: dict[str, Reconstruction | None] = {**task.baselines()}
        if self.size.of_task(task.card).packaged is None:
            others = self.platform.plugins.baselines().things.values()
            found |= {other.name: other.reconstruct for other in others if other.task == task.card.name}
        return found or {"load": None}

    async def run(self) -> int:
        """Do what is missing; returns how many steps that were. Raises CollidiumError."""
        self._token = await access.sign_in(self.platform.settings, self.state, local=self.local)
        await accounts.mark_baseline(ACCOUNT)
        reached("seed.signed_in")
        steps = [*self.steps()]
        done = [await step.is_done() for step in steps]
        todo = [step for step, is_done in zip(steps, done, strict=True) if not is_done]
        total = sum(step.seconds for step in todo)
        began, finished = monotonic(), 0.0
        for step in todo:

            def show(fraction: float, step: Step = step, before: float = finished) -> None:
                passed = before + fraction * step.seconds
                # As expected at first, then by how long it has taken so far.
                pace = (monotonic() - began) / passed if passed > 0.1 * total else 1.0
                self.report(step.title, passed / total, (total - passed) * pace)

            show(0.0)
            self._within = show
            await step.do()
            finished += step.seconds
        return len(todo)

    # -- datasets -----------------------------------------------------------------------------------------

    def repo(self, name: str) -> str:
        """The full name of a repository."""
        return self.state.published[name]["repo"]

    async def _is_published(self, one: DatasetPlan) -> bool:
        if one.name not in self.state.published:
            return False
        await asyncio.to_thread(shutil.rmtree, self._work(one), ignore_errors=True)
        repo = self.repo(one.name)
        hub = Hub(self.platform.settings.hub, self._token)
        with hub_failures(hub.endpoint):
            return await hub.ask(lambda api: bool(api.repo_exists(repo, repo_type="dataset")))

    async def _make(self, one: DatasetPlan) -> None:
        work = self._work(one)
        made = await self._packaged(one) if one.packaged else await self._simulated(one)
        reached("seed.made")
        self.state.begin(one.name)
        card = work / "card.md"
        await asyncio.to_thread(card.write_text, self._card(one), "utf-8")
        publication = Publication(
            directory=made,
            repo=one.name,
            config=one.config,
            card=card if one.evaluated else None,
            withholding=Withholding(_events(made, one), self.truth(one)) if one.evaluated else None,
            platform_tag=self.platform.settings.platform_tag,
        )
        published = await publish(publication, Hub(self.platform.settings.hub, self._token))
        reached("seed.published")
        self.state.published[one.name] = {
            "repo": published.repo,
            "revision": published.revision,
            "events": str(_events(made, one)),
        }
        self.state.save()
        await asyncio.to_thread(shutil.rmtree, work)

    def _work(self, one: DatasetPlan) -> Path:
        return self.state.directory / "work" / one.name

    def truth(self, one: DatasetPlan) -> Path:
        """Where the truth of an evaluation set is."""
        return self.state.directory / "truth" / one.name

    async def _packaged(self, one: DatasetPlan) -> Path:
        directory = self._work(one) / "events"
        await asyncio.to_thread(shutil.rmtree, self._work(one), ignore_errors=True)
        start = one.first_packaged % plan.FIRST_EVALUATED
        places = EventRange(start, start + one.events)
        assert one.packaged is not None  # noqa: S101 -- the caller's
        return await asyncio.to_thread(copy_events, one.packaged, directory, places, one.config)

    async def _simulated(self, one: DatasetPlan) -> Path:
        sources = []
        for number, channel in enumerate(one.channels):
            seed = self.state.secret_seed(one.name, channel) if one.evaluated else plan.PUBLIC_SEED
            order = Order(channel, one.events, one.pileup, seed)
            directory = self._work(one) / channel
            options = RunOptions(pipeline=BUILT_IN, runtime=NONE)
            first_event = 0 if one.mixed else one.first_event
            await in_thread(
                partial(
                    simulate,
                    *(order, directory, options),
                    get=self.platform.plugins.pipelines().get,
                    report=partial(self._stage, number, len(one.channels)),
                    note=lambda _: None,
                    first_event=first_event,
                ),
                "seed",
            )
            sources.append(directory)
        if not one.mixed:
            return sources[0]
        mixed = self._work(one) / "mix"
        if not mixed.exists():
            order_seed = self.state.secret_seed(one.name, "order")
            mixing = partial(
                mix_channels, sources, mixed, one.events, first_event=one.first_event, seed=order_seed
            )
            await asyncio.to_thread(mixing)
        return mixed

    def _stage(self, number: int, of: int, progress: StageProgress) -> None:
        stages = (progress.number - 1 + progress.fraction) / progress.of
        self._within((number + stages) / of)

    def _card(self, one: DatasetPlan) -> str:
        """What the events of an evaluation set are, but for their seed."""
        pipeline = self.platform.plugins.pipelines().things.get(BUILT_IN)
        facts = {"config": one.config, "pileup": one.pileup}
        origin = "Real events that come with Collidium, for its demo; see the documentation."
        if one.packaged is None and pipeline is not None:
            facts["channels"] = ", ".join(one.channels)
            facts["pipeline"] = f"{pipeline.name}, version {pipeline.version}"
            facts |= pipeline.facts if one.mixed else pipeline.facts_of(one.channels[0])
            origin = f"Simulated events, made by this server with `collidium seed` ({self.state.size})."
        return (
            f"# {one.name}\n\n{origin} They are scored: what made their hits is withheld.\n\n"
            f"{cards.table(('', ''), [(name, str(fact)) for name, fact in facts.items()])}\n"
        )

    # -- truth --------------------------------------------------------------------------------------------

    def _evaluated(self, task: Task) -> tuple[DatasetPlan, EventRange]:
        one = self.size.of_task(task.card)
        return one, self.size.events_of(task.card, self.state.events_of(one.name))

    async def _has_truth(self, task: Task) -> bool:
        one = self.size.of_task(task.card)
        if one.name not in self.state.published:
            return False
        version = await self._truth_version(task)
        if version is None:
            return False
        truth = await truth_versions.find(task.card.name, version)
        return (truth.dataset, truth.events) == (one.config, self._evaluated(task)[1])

    async def _truth_version(self, task: Task) -> str | None:
        return (await tasklist.status_of(self.platform.tasks, task.card.name)).truth_version

    async def _import(self, task: Task) -> None:
        self.state.begin(f"truth of {task.card.name}")
        one, events = self._evaluated(task)
        await truth_versions.import_truth(
            self.platform,
            task.card.name,
            str(self.truth(one)) if one.evaluated else self.repo(one.name),
            config=one.config,
            events=events,
            inputs=self.repo(one.name) if one.evaluated else None,
            train=self.repo(one.train) if one.train else None,
            token=self._token,
        )
        reached("seed.imported")

    # -- baselines ----------------------------------------------------------------------------------------

    def _model(self, task: Task, baseline: str) -> str:
        owner = next(iter(self.state.published.values()))["repo"].partition("/")[0]
        return f"{owner}/{task.card.name}-{baseline}"

    async def _is_submitted(self, task: Task, baseline: str) -> bool:
        if not await self._has_truth(task):
            return False
        account = await accounts.find(ACCOUNT)
        wanted = self._model(task, baseline), task.version, await self._truth_version(task)
        kept = await reading.list_submissions(
            self.platform, limit=1000, task=task.card.name, account_id=account.id
        )
        return any((one.model_repo, one.scorer_version, one.truth_version) == wanted for one in kept)

    async def _submit(self, task: Task, baseline: str) -> None:
        await self._publish_model(task, baseline)
        account = await accounts.find(ACCOUNT)
        async with (
            submitting.admitted(self.platform, account, task.card.name) as admission,
            scratch_directory(self.state.directory) as scratch,
        ):
            path = scratch / "predictions.parquet"
            try:
                await in_thread(partial(self._predict, task, baseline, path), "seed")
            except Exception as error:  # it may be third-party
                raise CollidiumError(
                    f"the baseline {baseline} of {task.card.name} failed: {single_line(repr(error))}"
                ) from error
            sha256 = await asyncio.to_thread(sha256_of, path)
            predictions = submitting.Predictions(path, sha256, path.stat().st_size)
            model = self._model(task, baseline)
            await submitting.submit(
                *(self.platform, admission, predictions), check_claim=_own, model_repo=model
            )
        reached("seed.submitted")

    def _predict(self, task: Task, baseline: str, path: Path) -> None:
        """Write the baseline's predictions, made of what is public; blocks."""
        reconstruct = self.baselines(task)[baseline]
        one, events = self._evaluated(task)
        if reconstruct is None:
            self._time_reading(task, one, events, path)
            return
        dataset = Dataset(self.truth(one), one.config)
        blocks = dataset.read(task.card.inputs, events)
        write_predictions(
            pa.concat_tables(
                [reconstruct({name: _public(name, tables[name]) for name in tables}) for _, tables in blocks]
            ),
            path,
        )

    def _time_reading(self, task: Task, one: DatasetPlan, events: EventRange, path: Path) -> None:
        place = HubDataset(self.repo(one.name), self.platform.settings.hub, token=self._token)
        table = task.card.inputs[0]
        fetched = download(place, one.config, [table], events, cache=self.state.directory / "cache")
        part = Slice(place, fetched, one.config, table, range(events.start, events.stop))
        time_slice(part, loaders.load, repeats=_READINGS).write(path)

    async def _publish_model(self, task: Task, baseline: str) -> None:
        """Make the baseline's model repository, with a card and what it has learned, where there is none."""
        from huggingface_hub import CommitOperationAdd

        model, hub = self._model(task, baseline), Hub(self.platform.settings.hub, self._token)
        with hub_failures(hub.endpoint):
            await hub.ask(lambda api: api.create_repo(model, exist_ok=True))
            if await hub.ask(lambda api: api.file_exists(model, cards.CARD)):
                return
            tag = self.platform.settings.platform_tag
            card = model_card(task, baseline, self.baselines(task)[baseline], tag)
            files = {**task.model_files(baseline), cards.CARD: card.encode()}
            operations = [CommitOperationAdd(*file) for file in files.items()]
            await hub.ask(
                lambda api: api.create_commit(model, operations, commit_message=f"The baseline {baseline}")
            )


def model_card(task: Task, baseline: str, reconstruct: Reconstruction | None, tag: str) -> str:
    """Return the card of a baseline's model repository, which describes it by its docstring."""
    matter = {
        "tags": [tag, f"{tag}-task:{task.card.name}"],
        "library_name": "collidium",
        "description": f"The baseline {baseline} of {task.card.title}",
    }
    description = inspect.getdoc(reconstruct or loaders.load) or ""
    body = f"# {baseline}\n\nThe baseline `{baseline}` of the task `{task.card.name}`.\n\n{description}\n"
    return cards.card(matter, body)


async def _own(_: str) -> Claim | None:
    """The claim to a repository that the same token has just written."""
    return "verified"


def _public(name: str, table: pa.Table) -> pa.Table:
    """The columns of a table that are public."""
    table = without_truth(name, table)
    return table.select([one for one in table.column_names if table[one].null_count < len(table)])


def _events(directory: Path, one: DatasetPlan) -> EventRange:
    dataset = Dataset(directory, one.config)
    table = dataset.configs()[one.config][0]
    ids = dataset.table(table).event_ids
    return EventRange(int(ids[0]), int(ids[-1]) + 1)
