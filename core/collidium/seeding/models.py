"""Sends the examples of models, baselines as ONNX, which the server runs: leaderboards have measured rows."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING

from collidium import accounts
from collidium.benchmarks.submissions import admissions, evaluations, receiving, submitting
from collidium.contracts.task import Task
from collidium.datasets import cards
from collidium.files.held import scratch_directory
from collidium.runtime.failpoints import reached
from collidium.seeding import baselines
from collidium.seeding.access import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collidium.seeding.steps import Seeding


def examples(seeding: Seeding, task: Task) -> Sequence[str]:
    """The models of a task that are sent: none to a challenge, and none where they cannot be made or run."""
    needed = ("onnx", "onnxruntime", "skl2onnx")
    if seeding.draft is not None or not all(map(find_spec, needed)):
        return ()
    return tuple(task.model_examples())


async def is_sent(seeding: Seeding, task: Task, name: str) -> bool:
    """Whether it was received by the scorer and for the truth of now."""
    if not await seeding.has_truth(task):
        return False
    version = await seeding.truth_version(task) or ""
    return await evaluations.was_received(_repo(seeding, task, name), task.version, version)


async def send(seeding: Seeding, task: Task, name: str) -> None:
    """Publish the model's files, and put it into the queue of the server."""
    repo = _repo(seeding, task, name)
    files = await asyncio.to_thread(task.model_examples()[name])
    matter = baselines.matter(
        task, f"The model {name} of {task.card.title}", seeding.platform.settings.platform_tag
    )
    text = f"# {name}\n\nThe example `{name}` of `collidium model example {task.card.name} {name}`.\n"
    await baselines.publish(seeding, repo, {**files, cards.CARD: cards.card(matter, text).encode()})
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
            check_claim=baselines.own,
            model_repo=repo,
        )
    reached("seed.submitted")


def _repo(seeding: Seeding, task: Task, name: str) -> str:
    return baselines.model_repo(seeding, task, f"{name}-onnx")
