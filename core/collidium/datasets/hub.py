"""Fetches the shards that are needed from a dataset repository of a hub."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.errors import CollidiumError, NotFound, Unauthenticated, UnusableDataset, UpstreamError

if TYPE_CHECKING:
    from huggingface_hub import HfApi, HfFileSystem


@dataclass(frozen=True, slots=True)
class Fetched:
    """Shards in a local directory that has the repository's layout."""

    directory: Path
    #: The commit they were taken from, 40 hexadecimal digits.
    revision: str


@dataclass(frozen=True, slots=True)
class HubDataset:
    """Where a dataset is: ``repo`` as ``namespace/name`` on the hub at ``endpoint``."""

    repo: str
    endpoint: str
    revision: str = "main"
    token: str | None = None


async def fetch(
    source: HubDataset,
    tables: Sequence[str],
    cache: Path,
    *,
    config: str | None = None,
    events: EventRange | None = None,
) -> Fetched:
    """Download the shards of ``tables`` into ``cache``; those that are there already are not sent again.

    With ``events`` only shards whose footer says that they hold some of them. Raises NotFound without such
    a repository, Unauthenticated where the token is refused, UnusableDataset without such a table, and
    UpstreamError for anything else that goes wrong with the hub.
    """
    return await asyncio.to_thread(_fetch, source, tables, cache, config, events)


def _fetch(
    source: HubDataset, tables: Sequence[str], cache: Path, config: str | None, events: EventRange | None
) -> Fetched:
    from huggingface_hub import HfApi, HfFileSystem
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    # False, not None: a token that happens to lie on this machine must not go to a hub it is not meant for.
    token = source.token or False
    try:
        api = HfApi(endpoint=source.endpoint, token=token)
        info = api.dataset_info(source.repo, revision=source.revision)
        commit = str(info.sha)
        paths = [sibling.rfilename for sibling in info.siblings or []]
        files = HfFileSystem(endpoint=source.endpoint, token=token, skip_instance_cache=True)
        root = f"datasets/{source.repo}@{commit}"
        for table in tables:
            shards = layout.shards(paths, table, config)
            wanted = [path for path in shards if events is None or _holds(files, f"{root}/{path}", events)]
            for path in wanted or shards[:1]:
                _download(api, source.repo, commit, path, cache)
    except GatedRepoError as error:
        raise Unauthenticated(f"the hub does not let you read {source.repo}") from error
    except RepositoryNotFoundError as error:
        raise NotFound(f"there is no dataset repository {source.repo} at {source.endpoint}") from error
    except CollidiumError:
        raise
    except Exception as error:  # the errors of whatever HTTP library this version of the hub's client has
        raise UpstreamError(f"fetching {source.repo} from {source.endpoint} failed: {error}") from error
    return Fetched(_snapshot(cache, source.repo, commit), commit)


def _holds(files: HfFileSystem, path: str, events: EventRange) -> bool:
    """Whether a shard may hold events of the range, by its footer: a few kB instead of the whole file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with files.open(path, "rb", block_size=256 * 1024) as file:
            metadata = pq.read_metadata(cast(IO[bytes], file))
    except pa.ArrowException as error:
        raise UnusableDataset(f"{path}: cannot be read as parquet: {error}") from error
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = (group.column(index) for index in range(group.num_columns))
        statistics = next((c.statistics for c in columns if c.path_in_schema == "event_id"), None)
        if statistics is None or statistics.min is None or statistics.max is None:
            return True
        if statistics.min < events.stop and statistics.max >= events.start:
            return True
    return False


def _download(api: HfApi, repo: str, commit: str, path: str, cache: Path) -> None:
    api.hf_hub_download(repo, path, repo_type="dataset", revision=commit, cache_dir=cache)


def _snapshot(cache: Path, repo: str, commit: str) -> Path:
    from huggingface_hub.file_download import repo_folder_name

    return cache / repo_folder_name(repo_id=repo, repo_type="dataset") / "snapshots" / commit
