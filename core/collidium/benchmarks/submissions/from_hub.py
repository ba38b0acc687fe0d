"""Predictions in a dataset repository of the hub, downloaded by the server with the right of the account."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.benchmarks.submissions.submitting import Predictions
from collidium.errors import InvalidInput, NotFound, TooLarge, Unavailable, Unreachable
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.hub.client import transfer_seconds
from collidium.runtime.waiting import in_thread

if TYPE_CHECKING:
    from collidium.hub.reader import HubReader
    from collidium.settings import Settings

_NAME: Final = r"[A-Za-z0-9][\w.-]*"
_SOURCE: Final = re.compile(rf"({_NAME}/{_NAME}):([^\x00]+)@([\w./-]+)", re.ASCII)


@asynccontextmanager
async def downloaded(
    settings: Settings, token: str | None, source: str, limit: int
) -> AsyncIterator[Predictions]:
    """Download ``NAMESPACE/NAME:PATH@COMMIT``, for the duration of the context.

    A branch or tag becomes its commit. Raises InvalidInput, NotFound, Unauthenticated and Forbidden as the
    hub answers this token, TooLarge past ``limit`` bytes, UnusableDataset for a file that is damaged there,
    Unavailable and UpstreamError.
    """
    found = _SOURCE.fullmatch(source)
    if found is None:
        detail = f"it is written NAMESPACE/NAME:PATH@COMMIT, not {source[:200]!r}"
        raise InvalidInput(detail, errors=[{"field": "source", "detail": detail}])
    from collidium.hub.reader import HubReader

    hub = HubReader(settings.hub, token, connections=2)
    try:
        async with scratch_directory(settings.uploads) as scratch:
            work = partial(_download, hub, found[1], found[2], found[3], limit, scratch)
            try:
                async with asyncio.timeout(transfer_seconds(limit)):
                    predictions = await in_thread(work, "hub")
            except TimeoutError:
                raise Unavailable(f"the hub {settings.hub} is too slow; try again later") from None
            yield predictions
    finally:
        hub.stopped.set()


def _download(
    hub: HubReader, repo: str, path: str, revision: str, limit: int, directory: Path
) -> Predictions:
    from collidium.hub.download_store import DownloadStore
    from collidium.hub.downloads import NoRoom, download_missing
    from collidium.hub.repository import Repository
    from collidium.hub.sources import HubDataset

    try:
        with hub:
            place = HubDataset(repo, hub.endpoint, revision)
            repository = Repository.read(hub, place, is_wanted=lambda _: False)
            file = repository.find(hub, path)
            if file is None:
                raise NotFound(f"{repo} has no file {path} at {revision}")
            if file.size > limit:
                raise TooLarge(f"{path} is larger than {limit:,} bytes, the most that is taken here")
            store = DownloadStore(directory, directory / ".download")
            download_missing(hub, repository, store, [file])
    except (Unreachable, NoRoom) as error:
        raise Unavailable(error.detail) from error
    there = store.path(file)
    sha256 = file.digest if len(file.digest) == 64 else sha256_of(there)
    return Predictions(there, sha256, file.size, f"{repo}:{path}@{repository.commit}")
