"""Submits the baselines of a task: predictions, and example models that the server runs.

Each has a model repository. The account earns no credits.
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
from collidium.client import write_predictions
from collidium.contracts.task import EventRange, Reconstruction, Task
from collidium.datasets import Dataset, cards, download
from collidium.datasets.publishing.blinding import without_truth
from collidium.errors import CollidiumError
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.hub.client import hub_failures
from collidium.hub.sources import HubDataset
from collidium.model_runs import model_queue
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import single_line
from collidium.runtime.waiting import in_thread
from collidium.scoring.bench import loaders
from collidium.scoring.bench.data_loading import Slice, time_slice
from collidium.seeding.access import ACCOUNT
from collidium.submissions import admissions, reading, receiving, submit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collidium.seeding.plan import DatasetPlan
    from collidium.seeding.steps import Seeding

#: Repetitions of the timing of reading.
_READINGS: Final = 3


async def is_submitted(seeding: Seeding, task: Task, baseline: str) -> bool:
    """Whether a baseline was scored by the current scorer against the current truth."""
    if not await seeding.has_truth(task):
        return False
    account = await accounts.find(ACCOUNT)
    wanted = model_repo(seeding, task, baseline), task.version, await seeding.truth_version(task)
    kept = await reading.list_submissions(
        seeding.platform, limit=1000, challenge=seeding.challenge(task), account_id=account.id
    )
    return any((one.model_repo, one.scorer_version, one.truth_version) == wanted for one in kept)


async def submit_baseline(seeding: Seeding, task: Task, baseline: str) -> None:
    """Make the predictions of a baseline, and submit them with its model."""
    card = model_card(task, baseline, seeding.baselines(task)[baseline], seeding.platform.settings.tag)
    files = {**task.model_files(baseline), cards.CARD: card.encode()}
    await publish(seeding, model_repo(seeding, task, baseline), files)
    account = await accounts.find(ACCOUNT)
    async with (
        admissions.admitted(seeding.platform, account, seeding.challenge(task), early=True) as admission,
        scratch_directory(seeding.state.directory) as scratch,
    ):
        path = scratch / "predictions.parquet"
        try:
            await in_thread(partial(_predict, seeding, task, baseline, path), "seed")
        except Exception as error:  # baselines may be third-party code
            raise CollidiumError(
                f"the baseline {baseline} of {task.card.name} failed: {single_line(repr(error))}"
            ) from error
        sha256 = await asyncio.to_thread(sha256_of, path)
        predictions = submit.Predictions(path, sha256, path.stat().st_size)
        model = model_repo(seeding, task, baseline)
        await submit.submit(seeding.platform, admission, predictions, check_claim=own, model_repo=model)
    reached("seed.submitted")


def model_repo(seeding: Seeding, task: Task, baseline: str) -> str:
    """Return the repository of a baseline's model."""
    owner = next(iter(seeding.state.published.values()))["repo"].partition("/")[0]
    return f"{owner}/{task.card.name}-{baseline}"


def _predict(seeding: Seeding, task: Task, baseline: str, path: Path) -> None:
    """Write the predictions of a baseline from public data. Blocks."""
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
    """Create a model repository with files, including its card, unless it exists."""
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
    """Return the card of a baseline's model repository, with its docstring as description."""
    description = inspect.getdoc(reconstruct or loaders.load) or ""
    body = f"# {baseline}\n\nThe baseline `{baseline}` of the task `{task.card.name}`.\n\n{description}\n"
    return cards.card(front_matter(task, f"The baseline {baseline} of {task.card.title}", tag), body)


def front_matter(task: Task, description: str, tag: str) -> dict[str, object]:
    """Return the front matter of a model's card."""
    tags = [tag, f"{tag}-task:{task.card.name}"]
    return {"tags": tags, "library_name": "collidium", "description": description}


async def own(_: str) -> reading.Claim | None:
    """Return the claim to a repository that was just written with the same token."""
    return "verified"


def _public(name: str, table: pa.Table) -> pa.Table:
    """Return the public columns of a table."""
    table = without_truth(name, table)
    return table.select([one for one in table.column_names if table[one].null_count < len(table)])


def model_examples(seeding: Seeding, task: Task) -> Sequence[str]:
    """Return the example models to submit: none to a challenge, or if they cannot be created or run here."""
    needed = ("onnx", "onnxruntime", "skl2onnx")
    if seeding.draft is not None or not all(map(find_spec, needed)):
        return ()
    return tuple(task.model_examples())


async def is_model_sent(seeding: Seeding, task: Task, name: str) -> bool:
    """Whether a model was received for the current scorer and truth."""
    if not await seeding.has_truth(task):
        return False
    version = await seeding.truth_version(task) or ""
    return await model_queue.was_received(_model_example_repo(seeding, task, name), task.version, version)


async def send_model(seeding: Seeding, task: Task, name: str) -> None:
    """Publish the files of an example model, and queue it on the server."""
    repo = _model_example_repo(seeding, task, name)
    files = await asyncio.to_thread(task.model_examples()[name])
    matter = front_matter(task, f"The model {name} of {task.card.title}", seeding.platform.settings.tag)
    text = f"# {name}\n\nThe example `{name}` of `collidium model example {task.card.name} {name}`.\n"
    await publish(seeding, repo, {**files, cards.CARD: cards.card(matter, text).encode()})
    account = await accounts.find(ACCOUNT)
    content = files["model.onnx"]
    async with (
        admissions.admitted(seeding.platform, account, seeding.challenge(task)) as admission,
        scratch_directory(seeding.state.directory) as scratch,
    ):
        path = scratch / "model.onnx"
        await asyncio.to_thread(path.write_bytes, content)
        await receiving.receive(
            seeding.platform,
            admission,
            submit.Predictions(path, sha256(content).hexdigest(), len(content)),
            files["manifest.toml"].decode(),
            check_claim=own,
            model_repo=repo,
            may_wait=True,  # often the server starts later
        )
    reached("seed.submitted")


def _model_example_repo(seeding: Seeding, task: Task, name: str) -> str:
    return model_repo(seeding, task, f"{name}-onnx")
