"""Storage ``hub``: files in a private dataset repository of the hub, for servers without a persistent disk.

The repository keeps its history: contents of replaced and deleted files stay until the operator squashes it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable, check_key
from collidium.files.held import scratch_directory
from collidium.hookspecs import hookimpl
from collidium.hub import offline
from collidium.hub.client import CALL_SECONDS, Hub, HubError, HubRefused, transfer_seconds

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.hf_api import RepoFile

    from collidium.settings import Settings

T = TypeVar("T")

#: Attempts of a commit that conflicts with concurrent ones.
_COMMITS: Final = 8
_CONFLICT: Final = frozenset({409, 412})


@hookimpl
def collidium_storages(settings: Settings) -> list[Storage]:
    """Return no storage if no repository is configured."""
    if not (settings.storage_hub_repo and settings.storage_hub_token):
        return []
    offline.ignore()  # this hub is a setting, also where no server runs, as on a worker of Dask
    hub = Hub(settings.hub, settings.storage_hub_token.get_secret_value())
    return [HubStorage(hub, settings.storage_hub_repo)]


class HubStorage(Storage):
    """A file per key and a commit per change, so that files appear atomically."""

    name = "hub"

    def __init__(self, hub: Hub, repo: str) -> None:
        """``repo`` is ``namespace/name``; it is created as private on first use."""
        self.hub = hub
        self.repo = repo
        self._is_open = False

    async def put(self, key: str, path: Path) -> None:
        check_key(key)
        size = (await asyncio.to_thread(path.stat)).st_size
        await self._ask(lambda api: self._put(api, key, path), transfer_seconds(size))

    async def get(self, key: str, path: Path) -> None:
        check_key(key)
        file = await self._ask(lambda api: self._find(api, key))
        if file is None:
            raise MissingFile(f"no file is kept under {key!r}")
        async with scratch_directory(path.parent) as scratch:
            copy = await self._ask(
                lambda api: api.hf_hub_download(self.repo, key, repo_type="dataset", local_dir=scratch),
                transfer_seconds(file.size),
            )
            await asyncio.to_thread(Path(copy).replace, path)

    async def exists(self, key: str) -> bool:
        check_key(key)
        return await self._ask(lambda api: self._find(api, key)) is not None

    async def delete(self, key: str) -> None:
        check_key(key)
        await self._ask(lambda api: self._delete(api, key))

    async def close(self) -> None:
        """Do nothing: the process shares the connections of huggingface_hub."""

    async def _ask(self, function: Callable[[HfApi], T], seconds: float = CALL_SECONDS) -> T:
        try:
            return await self.hub.ask(partial(self._in_repository, function), seconds)
        except HubError as error:
            raise StorageUnavailable(f"{self.repo}: {error}") from error

    # -- in threads -------------------------------------------------------------------------------------

    def _in_repository(self, function: Callable[[HfApi], T], api: HfApi) -> T:
        if not self._is_open:
            api.create_repo(self.repo, repo_type="dataset", private=True, exist_ok=True)
            # Submissions are not public.
            if not api.dataset_info(self.repo, timeout=CALL_SECONDS).private:
                raise HubRefused("the repository is public; make it private")
            self._is_open = True
        return function(api)

    def _find(self, api: HfApi, key: str) -> RepoFile | None:
        from huggingface_hub.hf_api import RepoFile

        found = api.get_paths_info(self.repo, [key], repo_type="dataset")
        return next((file for file in found if isinstance(file, RepoFile)), None)

    def _put(self, api: HfApi, key: str, path: Path) -> None:
        from huggingface_hub import CommitOperationAdd

        self._commit(api, CommitOperationAdd(key, path), f"Keep {key}")

    def _delete(self, api: HfApi, key: str) -> None:
        from huggingface_hub import CommitOperationDelete
        from huggingface_hub.errors import EntryNotFoundError

        if self._find(api, key) is None:
            return
        try:
            self._commit(api, CommitOperationDelete(key, is_folder=False), f"Delete {key}")
        except EntryNotFoundError:
            return  # deleted by another process

    def _commit(
        self, api: HfApi, operation: CommitOperationAdd | CommitOperationDelete, message: str
    ) -> None:
        from huggingface_hub.errors import HfHubHTTPError

        for attempt in range(_COMMITS):
            try:
                api.create_commit(self.repo, [operation], repo_type="dataset", commit_message=message)
            except HfHubHTTPError as error:
                if error.response.status_code not in _CONFLICT or attempt == _COMMITS - 1:
                    raise
                time.sleep(random.uniform(0.1, 0.5) * 2**attempt)  # noqa: S311 -- jitter
            else:
                return
