"""Submits the baselines of a task, as an account that earns nothing: predictions, and examples of models.

Each has a model repository. Models are run by the server, so that leaderboards have measured rows.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from collidium import accounts
from collidium.benchmarks.submissions import admissions, evaluations, reading, receiving, submitting
from collidium.benchmarks.submissions.submitting import Claim
from collidium.client import write_predictions
from collidium.contracts.task import EventRange, Reconstruction, Task
from collidium.datasets import Dataset, cards, download
from collidium.datasets.publishing.public_part import without_truth
from collidium.errors import CollidiumError
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.hub.client import hub_failures
from collidium.hub.sources import HubDataset
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import single_line
from collidium.runtime.waiting import in_thread
from collidium.scoring.bench import loaders
from collidium.scoring.bench.data_loading import Slice, time_slice
from collidium.seeding.access import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collidium.seeding.plan import DatasetPlan
    from collidium.seeding.steps import Seeding

#: How often reading is timed.
_READINGS: Final = 3


async def is_submitted(seeding: Seeding, task: Task, baseline: str) -> bool:
    """Whether it was scored by the scorer and against the truth of now."""
    if not await seeding.has_truth(task):
        return False
    account = await accounts.find(ACCOUNT)
    wanted = model_repo(seeding, task, baseline), task.version, await seeding.truth_version(task)
    kept = await reading.list_submissions(
        seeding.platform, limit=1000, challenge=seeding.board(task), account_id=account.id
    )
    return any((one.model_repo, one.scorer_version, one.truth_version) == wanted for one in kept)


async def submit(seeding: Seeding, task: Task, baseline: str) -> None:
    """Make the baseline's predictions, and submit them with its model."""
    card = model_card(
        *(task, baseline, seeding.baselines(task)[baseline]), seeding.platform.settings.platform_tag
    )
    files = {**task.model_files(baseline), cards.CARD: card.encode()}
    await publish(seeding, model_repo(seeding, task, baseline), files)
    account = await accounts.find(ACCOUNT)
    async with (
        admissions.admitted(seeding.platform, account, seeding.board(task), early=True) as admission,
        scratch_directory(seeding.state.directory) as scratch,
    ):
        path = scratch / "predictions.parquet"
        try:
            await in_thread(partial(_predict, seeding, task, baseline, path), "seed")
        except Exception as error:  # it may be third-party
            raise CollidiumError(
                f"the baseline {baseline} of {task.card.name} failed: {single_line(repr(error))}"
            ) from error
        sha256 = await asyncio.to_thread(sha256_of, path)
        predictions = submitting.Predictions(path, sha256, path.stat().st_size)
        model = model_repo(seeding, task, baseline)
        await submitting.submit(
            *(seeding.platform, admission, predictions), check_claim=own, model_repo=model
        )
    reached("seed.submitted")


def model_repo(seeding: Seeding, task: Task, baseline: str) -> str:
    """The repository of a baseline's model."""
    owner = next(iter(seeding.state.published.values()))["repo"].partition("/")[0]
    return f"{owner}/{task.card.name}-{baseline}"


def _predict(seeding: Seeding, task: Task, baseline: str, path: Path) -> None:
    """Write the baseline's predictions, made of what is public; blocks."""
    reconstruct = seeding.baselines(task)[baseline]
    one, events = seeding.evaluated(task)
    if reconstruct is None:
        _time_reading(seeding, task, one, events, path)
        return
    dataset = Dataset(seeding.truth(one), one.config)
    blocks = dataset.read(task.card.inputs, events)
    write_predictions(
        pa.concat_tables(
            [reconstruct({name: _public(name, tables[name]) for name in tables}) for _, tables in blocks]
        ),
        path,
    )


def _time_reading(seeding: Seeding, task: Task, one: DatasetPlan, events: EventRange, path: Path) -> None:
    place = HubDataset(seeding.repo(one.name), seeding.hub.endpoint, token=seeding.hub.token)
    table = task.card.inputs[0]
    fetched = download(place, one.config, [table], events, cache=seeding.state.directory / "cache")
    part = Slice(place, fetched, one.config, table, range(events.start, events.stop))
    time_slice(part, loaders.load, repeats=_READINGS).write(path)


async def publish(seeding: Seeding, repo: str, files: Mapping[str, bytes]) -> None:
    """Make a model repository with files, its card among them, where there is none."""
    from huggingface_hub import CommitOperationAdd

    hub = seeding.hub
    with hub_failures(hub.endpoint):
        await hub.ask(lambda api: api.create_repo(repo, exist_ok=True))
        if await hub.ask(lambda api: api.file_exists(repo, cards.CARD)):
            return
        operations = [CommitOperationAdd(*file) for file in files.items()]
        message = f"The model {repo.partition('/')[2]}"
        await hub.ask(lambda api: api.create_commit(repo, operations, commit_message=message))


def model_card(task: Task, baseline: str, reconstruct: Reconstruction | None, tag: str) -> str:
    """Return the card of a baseline's model repository, which describes it by its docstring."""
    description = inspect.getdoc(reconstruct or loaders.load) or ""
    body = f"# {baseline}\n\nThe baseline `{baseline}` of the task `{task.card.name}`.\n\n{description}\n"
    return cards.card(front_matter(task, f"The baseline {baseline} of {task.card.title}", tag), body)


def front_matter(task: Task, description: str, tag: str) -> dict[str, object]:
    """What a model's card has before its text."""
    tags = [tag, f"{tag}-task:{task.card.name}"]
    return {"tags": tags, "library_name": "collidium", "description": description}


async def own(_: str) -> Claim | None:
    """The claim to a repository that the same token has just written."""
    return "verified"


def _public(name: str, table: pa.Table) -> pa.Table:
    """The columns of a table that are public."""
    table = without_truth(name, table)
    return table.select([one for one in table.column_names if table[one].null_count < len(table)])


def model_examples(seeding: Seeding, task: Task) -> Sequence[str]:
    """The models of a task that are sent: none to a challenge, and none where they cannot be made or run."""
    needed = ("onnx", "onnxruntime", "skl2onnx")
    if seeding.draft is not None or not all(map(find_spec, needed)):
        return ()
    return tuple(task.model_examples())


async def is_model_sent(seeding: Seeding, task: Task, name: str) -> bool:
    """Whether it was received by the scorer and for the truth of now."""
    if not await seeding.has_truth(task):
        return False
    version = await seeding.truth_version(task) or ""
    return await evaluations.was_received(_model_example_repo(seeding, task, name), task.version, version)


async def send_model(seeding: Seeding, task: Task, name: str) -> None:
    """Publish the model's files, and put it into the queue of the server."""
    repo = _model_example_repo(seeding, task, name)
    files = await asyncio.to_thread(task.model_examples()[name])
    matter = front_matter(
        task, f"The model {name} of {task.card.title}", seeding.platform.settings.platform_tag
    )
    text = f"# {name}\n\nThe example `{name}` of `collidium model example {task.card.name} {name}`.\n"
    await publish(seeding, repo, {**files, cards.CARD: cards.card(matter, text).encode()})
    account = await accounts.find(ACCOUNT)
    content = files["model.onnx"]
    async with (
        admissions.admitted(seeding.platform, account, seeding.board(task)) as admission,
        scratch_directory(seeding.state.directory) as scratch,
    ):
        path = scratch / "model.onnx"
        await asyncio.to_thread(path.write_bytes, content)
        await receiving.receive(
            *(seeding.platform, admission),
            submitting.Predictions(path, sha256(content).hexdigest(), len(content)),
            files["manifest.toml"].decode(),
            check_claim=own,
            model_repo=repo,
        )
    reached("seed.submitted")


def _model_example_repo(seeding: Seeding, task: Task, name: str) -> str:
    return model_repo(seeding, task, f"{name}-onnx")
