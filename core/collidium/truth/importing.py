"""Prepares truth from a dataset: its tables, inputs of models and sketches, all in the storage."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from collidium.contracts.storage import StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.datasets import fetch
from collidium.errors import Unavailable
from collidium.hub.sources import HubDataset, locate
from collidium.runtime.progress import Progress
from collidium.scoring.truth.importing import build_from
from collidium.scoring.truth.published import is_readable
from collidium.truth import model_inputs, sketches
from collidium.truth.models import TruthVersion
from collidium.truth.published_data import find_data, hub_cache, located
from collidium.truth.registry import PreparedTruth
from collidium.truth.sketches import SKETCHES

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.secrets import Secrets


_VERSION_DIGITS: Final = 12


class ImportOptions(TypedDict, total=False):
    """Options of :func:`prepare`."""

    config: str | None
    events: EventRange | None
    options: Mapping[str, str] | None
    inputs: str | None
    train: str | None
    token: str | None
    progress: Progress | None


async def prepare(
    platform: Platform,
    task_name: str,
    source: str,
    *,
    config: str | None = None,
    events: EventRange | None = None,
    options: Mapping[str, str] | None = None,
    inputs: str | None = None,
    train: str | None = None,
    token: str | None = None,
    progress: Progress | None = None,
) -> PreparedTruth:
    """Prepare truth from a dataset. The same input gives the version that it had before.

    Parameters
    ----------
    source : str
        A directory, or a hub repository ``namespace/name``, read with ``token``.
    events : EventRange, optional
        By default those of the card.
    options : mapping of str to str, optional
        Choices among the task's ``truth_options``.
    inputs, train : str, optional
        ``namespace/name`` or ``namespace/name@revision``: repositories that cards name for the inputs of
        these events and for training events (:func:`~.published_data.find_data`). By default those of an
        earlier import.

    Raises
    ------
    NotFound
        For an unknown task or repository.
    InvalidInput
        For unknown options.
    UnusableDataset
        The dataset lacks something that the task needs.
    Unavailable
        The storage fails.
    """
    task = platform.tasks.find(task_name)
    settings = platform.settings
    place = locate(source, endpoint=settings.hub, token=token or "")
    cache = hub_cache(platform)
    data = await asyncio.to_thread(
        find_data,
        task.card,
        place,
        located(inputs, settings, token) if inputs else None,
        located(train, settings, token) if train else None,
        config=config,
        events=events or task.card.eval_events,
        cache=cache,
    )
    truth = await build_from(
        task,
        place,
        config=config,
        directory=platform.truth_cache.directory,
        executor=platform.executor,
        limits=settings.scoring_limits,
        events=events,
        options=options,
        cache=cache,
        progress=progress,
        version_of=partial(_version_of, platform.secrets, task_name),
    )
    try:
        read = await model_inputs.store(
            platform, task, place, config=config, events=truth.events, cache=cache
        )
        names = sorted({*task.card.truth_sources, *task.card.inputs})
        directory = (
            place
            if isinstance(place, Path)  # a repository's tables were fetched before
            else (await fetch(place, names, cache, config=config, events=truth.events)).directory
        )
        secret = secret_of({name: table.sha256 for name, table in truth.tables.items()})
        sketched, packaged = await sketches.store(
            platform, task.card, directory, config, truth.events, secret
        )
        published = packaged or await asyncio.to_thread(is_readable, place, cache)
        # Last: until the database has its hash, no other machine can read what replaces a manifest.
        earlier = await TruthVersion.get_or_none(task=task_name, version=truth.version)
        sha256 = await platform.truth_cache.store(truth, earlier.manifest_sha256 if earlier else None)
    except StorageUnavailable as error:
        raise Unavailable(f"the storage cannot keep truth: {error}") from error
    manifest = truth.as_dict() | {"is_published": published, SKETCHES: sketched}
    if isinstance(place, HubDataset):
        manifest |= {
            "source": {"repository": place.repo, "revision": truth.revision, "config": truth.dataset}
        }
    return PreparedTruth(manifest, sha256, data, read)


def secret_of(tables: Mapping[str, str]) -> str:
    """A text that only those who have the truth know, from the SHA-256 of its tables."""
    return " ".join(f"{name}={sha256}" for name, sha256 in sorted(tables.items()))


async def _version_of(key: Secrets, task: str, content: str) -> str:
    """The version of a truth with this content: that of an earlier import, or a hash with the server's key.

    Users see versions, and a hash of hidden values would confirm a guess of all of them at once.
    """
    for row in await TruthVersion.filter(task=task).order_by("id"):
        version = row.version.whole
        if (row.manifest.get("content") or version) == content:  # versions were hashes before
            return version
    return key.keyed_hash(f"truth {task} {content}")[:_VERSION_DIGITS]
