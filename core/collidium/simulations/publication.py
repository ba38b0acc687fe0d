"""Publish a request's output as a dataset of its owner, with a card and a manifest.

It is published once, in a single commit.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.contracts.storage import MissingFile, Storage
from collidium.datasets import cards
from collidium.datasets.cards import CARD, MANIFEST, DatasetFile
from collidium.files.held import work_directory
from collidium.files.stored import fetch
from collidium.hub import publishing
from collidium.hub.client import HubRefused, HubUnavailable
from collidium.hub.publishing import PublishingTarget, is_sent
from collidium.order import Order, order_facts, order_title
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import entered_in_thread
from collidium.simulations.output import InvalidOutput, storage_key

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

#: A manifest in the repository is read up to twice the size of ours and this many bytes.
_MANIFEST_ROOM: Final = 64 * 1024
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin and content of a dataset."""

    request_id: str
    order: Order
    pipeline_version: str
    platform_tag: str
    #: The hub's address for users.
    hub: str
    files: Sequence[DatasetFile]
    #: Facts of the pipeline for the card: generator, versions, cross section.
    facts: Mapping[str, str] = field(default_factory=dict)


def dataset_card(provenance: Provenance, repo: str) -> str:
    """Return the ``README.md`` of the dataset's repository: front matter for the hub, and tables."""
    order = provenance.order
    facts = {
        **order_facts(order),
        "pipeline": provenance.pipeline_version,
        **provenance.facts,
        "request": provenance.request_id,
    }
    title = cards.single_line(order_title(order))
    tags = [provenance.platform_tag, "particle-physics", "simulation", order.channel]
    body = f"""# {cards.escaped(title)}

Collider events simulated to order: hard scatter and parton shower, detector simulation, digitisation and
reconstruction. Each row is one event; every column but `event_id` holds a list, with one entry for each
particle, hit or track of the event.

{cards.table(("", ""), facts.items())}

Each table is a config of its own:

{cards.example(provenance.hub, repo, cards.folders(provenance.files)[0].name)}
## Files

{cards.file_table(provenance.files)}
All of it is in `{MANIFEST}` for programs. The same channel, events, pileup, seed and pipeline give the same
events again.
"""
    splits = {order.config: cards.splits(0, order.events)}
    return cards.card(cards.front_matter(title, tags, order.events, provenance.files, splits), body)


def manifest(provenance: Provenance) -> bytes:
    """Return the content of ``collidium.json``: the facts of the card as JSON."""
    document = {
        "request_id": provenance.request_id,
        **provenance.order.parameters,
        "config": provenance.order.config,
        "pipeline_version": provenance.pipeline_version,
        "files": [asdict(file) for file in provenance.files],
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def is_manifest_of(content: bytes, provenance: Provenance) -> bool:
    """Whether a manifest describes this request and exactly these files."""
    try:
        document = json.loads(content)
        files = {file["path"]: file["sha256"] for file in document["files"]}
        request_id = document["request_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return bool(
        request_id == provenance.request_id and files == {file.path: file.sha256 for file in provenance.files}
    )


class RepositoryTaken(HubRefused):
    """The owner has another repository with that name."""


def repository_name(order: Order, ordered_on: date) -> str:
    """Return the name of the dataset of an order: ``ttbar-pu0-10ev-seed1-2026-11-22``."""
    varied = f"-vary-{order.config_hash('')[:6]}" if order.vary else ""
    channel = _UNSAFE.sub("-", order.channel).strip("-_")[:40]
    return f"{channel}-pu{order.pileup}-{order.events}ev-seed{order.seed}{varied}-{ordered_on}"


async def publish(provenance: Provenance, target: PublishingTarget, storage: Storage, scratch: Path) -> str:
    """Create the dataset repository with all files and the card in one commit; return its URL.

    Safe to repeat and to run concurrently: a repository that holds this request's manifest is already
    published, and a commit is made on top of an empty repository or fails. Files pass one by one through a
    directory below ``scratch``; files that the hub already has are not sent again. If the owner has another
    repository with that name, the beginning of the request's id is appended to the name.

    Raises HubUnavailable if a retry may succeed, else HubRefused; InvalidOutput if stored output is missing
    or damaged; and StorageUnavailable.
    """
    async with entered_in_thread(work_directory(scratch)) as directory:
        try:
            await _publish(provenance, target, storage, directory)
        except RepositoryTaken:
            target = replace(target, repo=f"{target.repo}-{provenance.request_id[:8]}")
            await _publish(provenance, target, storage, directory)
    return target.url


async def _publish(
    provenance: Provenance, target: PublishingTarget, storage: Storage, directory: Path
) -> None:
    head = await open_repository(provenance, target, directory)
    reached("publish.created")
    if head is not None:
        additions = await upload(provenance, target, storage, directory)
        reached("publish.uploaded")
        await commit(provenance, target, additions, head, directory)


async def open_repository(provenance: Provenance, target: PublishingTarget, directory: Path) -> str | None:
    """Return the head of an empty repository, created if absent; None if the output is published."""
    limit = 2 * len(manifest(provenance)) + _MANIFEST_ROOM
    contents = await publishing.open_repository(target, directory, MANIFEST, limit)
    if contents.manifest is not None and is_manifest_of(contents.manifest, provenance):
        return None
    if contents.files:
        raise RepositoryTaken(f"the hub already has a dataset {target.repo} with other content")
    if target.private and not contents.private:
        raise RepositoryTaken(
            f"the dataset {target.repo} should be private, but already exists as a public one"
        )
    return contents.head


async def upload(
    provenance: Provenance, target: PublishingTarget, storage: Storage, directory: Path
) -> list[CommitOperationAdd]:
    """Upload all files; they become visible with the commit."""
    additions = []
    for number, file in enumerate(provenance.files):
        path = directory / f"{number}.parquet"
        try:
            key = storage_key(provenance.request_id, file.sha256)
            await fetch(storage, key, path, file.sha256, final=True)
        except MissingFile:
            raise InvalidOutput(f"the output file {file.path} is no longer in the storage") from None
        additions.append(await _upload(file, path, target))
    return additions


async def commit(
    provenance: Provenance,
    target: PublishingTarget,
    additions: list[CommitOperationAdd],
    head: str,
    directory: Path,
) -> None:
    """Commit the uploaded files, with card and manifest, on top of ``head``."""
    texts = {CARD: dataset_card(provenance, target.repo).encode(), MANIFEST: manifest(provenance)}
    try:
        await publishing.commit(target, head, f"Simulation {provenance.request_id}", additions, texts)
    except HubUnavailable:
        # The response may be lost, or another process was faster.
        if await open_repository(provenance, target, directory) is not None:
            raise


async def _upload(file: DatasetFile, path: Path, target: PublishingTarget) -> CommitOperationAdd:
    addition = await publishing.upload(target, file.path, path, file.size_bytes)
    # The hub takes small files inside the commit: these stay on disk until then.
    if is_sent(addition):
        await asyncio.to_thread(path.unlink)
    return addition
