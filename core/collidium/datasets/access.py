"""Lists datasets of a hub or a local directory, and downloads their shards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.catalogue import Catalogue, ConfigEntry, HubCatalogue, LocalCatalogue, TableEntry
from collidium.errors import InvalidInput, Unavailable, Unreachable, UpstreamError
from collidium.hub.download_store import Cache, DownloadStore, Folder, default_cache
from collidium.hub.downloads import PARALLEL, download_missing
from collidium.hub.repository import Repository, tagged
from collidium.hub.sources import HubDataset, find_hub, locate
from collidium.runtime.progress import Progress

if TYPE_CHECKING:
    from collidium.hub.reader import HubReader

#: Hub tag of the platform's datasets.
TAG = "collidium"

#: A directory, ``namespace/name`` on the hub, or the address of a repository.
Source = str | Path | HubDataset
#: ``"0:1000"``, ``range(0, 1000)`` or an event range; None means all events.
Events = str | range | EventRange | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """Shards in a local directory with the layout of the repository."""

    directory: Path
    #: Source commit, 40 hexadecimal digits; ``local`` for a dataset in a local directory.
    revision: str
    #: Table -> relative paths of the shards that may contain requested events.
    shards: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Files that this call downloaded, and their total size in bytes.
    downloaded: tuple[str, ...] = ()
    downloaded_bytes: int = 0


def list_configs(
    source: Source, *, endpoint: str | None = None, revision: str | None = None, token: str | None = None
) -> list[ConfigEntry]:
    """List the configs of a dataset with their tables, shards and sizes.

    Parameters
    ----------
    source, endpoint, revision, token
        As for :func:`download`.

    Returns
    -------
    list of ConfigEntry
        Sorted by name.

    Raises
    ------
    CollidiumError
        As :func:`download`.
    """
    place = locate(source, endpoint=endpoint, revision=revision, token=token)
    with catalogue(place) as found:
        return found.configs()


def list_tables(
    source: Source,
    config: str | None = None,
    tables: str | Sequence[str] | None = None,
    *,
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    cache: Path | None = None,
) -> list[TableEntry]:
    """List the tables of a config with columns, shards and events. Only the footers of shards are read.

    Parameters
    ----------
    source, config, tables, endpoint, revision, token, cache
        As for :func:`download`.

    Returns
    -------
    list of TableEntry
        In the order of ``tables``, or sorted by name.

    Raises
    ------
    CollidiumError
        As :func:`download`.
    """
    place = locate(source, endpoint=endpoint, revision=revision, token=token)
    with catalogue(place, cache) as found:
        return found.tables(config, table_names(tables))


def list_repositories(
    *, endpoint: str | None = None, token: str | None = None, tag: str = TAG, limit: int = 100
) -> list[dict[str, Any]]:
    """List the dataset repositories of a hub that have a tag, most recently modified first.

    Parameters
    ----------
    endpoint, token
        As for :func:`download`.
    tag
        The tag; by default that of the platform's datasets.
    limit
        Maximum number of repositories.

    Returns
    -------
    list of dict
        ``repo``, ``last_modified`` (RFC 3339) and ``private`` of each.

    Raises
    ------
    Unreachable, Unavailable, UpstreamError
        If the hub is unreachable or fails.
    """
    from collidium.hub.reader import HubReader

    access = find_hub(endpoint, token)
    with HubReader(access.endpoint, access.token) as hub:
        return tagged(hub, tag, limit)


def download(
    source: Source,
    config: str | None = None,
    tables: str | Sequence[str] | None = None,
    events: Events = None,
    *,
    output: Path | None = None,
    cache: Path | None = None,
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    verify: bool = False,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
) -> Fetched:
    """Download the shards that contain the requested events and tables.

    Files that exist already are not downloaded again, and an interrupted download resumes, also within a
    file. Each shard is verified against the hub's hash. Complete shards of a full commit need no hub. With
    ``HF_HUB_OFFLINE=1`` no hub is called: a branch or tag is the commit that it had at its last download.

    Parameters
    ----------
    source
        A directory, ``NAMESPACE/NAME`` on the hub, or the address of a repository.
    config
        Name of a config; optional if the dataset has only one.
    tables
        One table or several; default: all tables of the config.
    events
        For example ``"0:1000"`` or ``range(0, 1000)``, the end exclusive; default: all events.
    output
        Directory for the shards, in the repository's layout; default: the cache.
    cache
        Cache directory; default: ``collidium/datasets`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    endpoint, token
        Address of the hub and access token; default: those of the environment or of the saved login.
    revision
        A branch, tag or commit; default: ``main``.
    verify
        Also verify the hashes of files that exist already.
    parallel
        Number of files downloaded concurrently.
    progress
        Called with the bytes received so far and the total.

    Returns
    -------
    Fetched
        The directory with the shards, and the commit they come from.

    Raises
    ------
    NotFound, Unauthenticated, Forbidden
        If the repository does not exist or the token may not read it.
    UnusableDataset
        For an unknown config or table, missing events, or a shard that is damaged on the hub.
    NoRoom
        If the disk is full.
    Unreachable, Unavailable, UpstreamError
        If the hub is unreachable or fails.
    """
    place = locate(source, endpoint=endpoint, revision=revision, token=token)
    names, wanted = table_names(tables), event_range(events)
    if isinstance(place, Path):
        if output is not None:
            raise InvalidInput(f"{place} is a local directory: there is nothing to download")
        with catalogue(place) as found:
            return Fetched(place, "local", _choose(found, config, names, wanted))
    with _opened(place, output, cache, parallel) as (hub, repository, store):
        shards = HubCatalogue(hub, repository, store)
        chosen = _choose(shards, config, names, wanted)
        files = [repository.files[path] for paths in chosen.values() for path in paths]
        new = download_missing(
            hub, repository, store, files, verify=verify, parallel=parallel, progress=progress
        )
        with suppress(Unreachable, Unavailable, UpstreamError):  # kept for those who read it without the hub
            shards.card()
        paths = tuple(file.path for file in new)
        return Fetched(store.directory, repository.commit, chosen, paths, sum(file.size for file in new))


async def fetch(
    source: HubDataset,
    tables: Sequence[str],
    cache: Path | None,
    *,
    config: str | None = None,
    events: EventRange | None = None,
    progress: Progress | None = None,
) -> Fetched:
    """Run :func:`download` in a thread.

    Parameters
    ----------
    source : HubDataset
    tables : sequence of str
    cache : pathlib.Path or None
        None: the default of :func:`download`.
    config, events, progress
        As for :func:`download`.

    Returns
    -------
    Fetched

    Raises
    ------
    CollidiumError
        As :func:`download`.
    """
    return await asyncio.to_thread(download, source, config, tables, events, cache=cache, progress=progress)


@contextmanager
def catalogue(
    place: Path | HubDataset, cache: Path | None = None, *, current: bool = False
) -> Iterator[Catalogue]:
    """Open the catalogue of a dataset. Raises as :func:`download`.

    With ``current`` the hub is asked for the present visibility of the repository, also for a full commit.
    """
    if isinstance(place, Path):
        yield LocalCatalogue(place)
        return
    with _opened(place, None, cache, PARALLEL, current=current) as (hub, repository, store):
        yield HubCatalogue(hub, repository, store)


@contextmanager
def _opened(
    place: HubDataset, output: Path | None, cache: Path | None, parallel: int, *, current: bool = False
) -> Iterator[tuple[HubReader, Repository, DownloadStore]]:
    from collidium.hub.commit_records import read_repository
    from collidium.hub.reader import HubReader

    root = cache or default_cache()
    own = Cache.metadata_dir(root, place.endpoint, place.repo)
    records = own if output is None else Folder.metadata_dir(output)
    with HubReader(place.endpoint, place.token, connections=max(parallel, PARALLEL)) as hub:
        repository = read_repository(hub, place, records, current=current)
        store: DownloadStore
        if output is None:
            store = Cache(root, repository)
        else:
            output.mkdir(parents=True, exist_ok=True)
            store = Folder(output, repository)
        yield hub, repository, store


def _choose(
    found: Catalogue, config: str | None, tables: Sequence[str] | None, events: EventRange | None
) -> dict[str, list[str]]:
    chosen = layout.choose(found.sizes, config)
    names = layout.configs(found.sizes)[chosen] if tables is None else tables
    return {name: found.holding(name, chosen, events) for name in names}


def table_names(tables: str | Sequence[str] | None) -> Sequence[str] | None:
    """Return a list of unique table names; None stands for all tables."""
    return [tables] if isinstance(tables, str) else tables and list(dict.fromkeys(tables))


def event_range(events: Events) -> EventRange | None:
    """Convert to an event range. Raises InvalidInput."""
    try:
        if isinstance(events, str):
            return EventRange.parse(events)
        if isinstance(events, range):
            if events.step != 1:
                raise ValueError("an event range has no gaps")
            return EventRange(events.start, events.stop)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    return events
