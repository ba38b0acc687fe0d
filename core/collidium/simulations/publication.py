"""Publishes a request's output as a dataset of whoever ordered it: whole or not at all, and once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.contracts.storage import MissingFile, Storage
from collidium.datasets.hub_client import CALL_SECONDS, Hub, HubRefused, HubUnavailable, transfer_seconds
from collidium.failpoints import reached
from collidium.held_files import scratch_directory, sweep
from collidium.simulations.dataset_card import MANIFEST, Provenance, dataset_card, is_manifest_of, manifest
from collidium.simulations.output import InvalidOutput, OutputFile, sha256_of, storage_key

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.hf_api import DatasetInfo

__all__ = ["HubRefused", "HubUnavailable", "Target", "publish", "url_of"]

#: What a hub itself puts into a new repository.
_OF_THE_HUB: Final = frozenset({".gitattributes"})
#: How much larger than ours a manifest may be that is read: beyond twice the size, this much.
_MANIFEST_ROOM: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """The repository ``namespace/name`` on a hub, reached with its owner's token."""

    hub: Hub
    repo: str
    private: bool

    @property
    def url(self) -> str:
        """Where people see the repository."""
        return url_of(self.hub.endpoint, self.repo)


def url_of(endpoint: str, repo: str) -> str:
    """Where people see a dataset repository of the hub at ``endpoint``."""
    return f"{endpoint}/datasets/{repo}"


async def publish(provenance: Provenance, target: Target, storage: Storage, scratch: Path) -> str:
    """Make the dataset repository, with all files and the card in one commit; returns its URL.

    Safe to repeat, and to run twice at once: a repository that holds this request's manifest was published
    before, and a commit goes on top of an empty repository or fails. Files pass one by one through a
    directory of their own below ``scratch``; those that the hub has already are not sent again.

    Raises HubUnavailable when trying later may work, HubRefused when it will not, also for a repository of
    that name which holds something else, InvalidOutput when the output is no longer kept as it was, and
    StorageUnavailable.
    """
    await asyncio.to_thread(sweep, scratch)
    try:
        async with scratch_directory(scratch) as directory:
            head = await open_repository(provenance, target, directory)
            reached("publish.created")
            if head is not None:
                additions = await upload(provenance, target, storage, directory)
                reached("publish.uploaded")
                await commit(provenance, target, additions, head, directory)
    finally:
        with suppress(OSError):  # another attempt's files may be there
            await asyncio.to_thread(scratch.rmdir)
    return target.url


async def open_repository(provenance: Provenance, target: Target, directory: Path) -> str | None:
    """The commit of an empty repository, made when absent, or None when all has been published."""
    return await target.hub.ask(lambda api: _open_repository(api, provenance, target, directory))


async def upload(
    provenance: Provenance, target: Target, storage: Storage, directory: Path
) -> list[CommitOperationAdd]:
    """Send the contents of all files; nothing is seen of them before they are committed."""
    additions = []
    for number, file in enumerate(provenance.files):
        path = directory / f"{number}.parquet"
        try:
            await storage.get(storage_key(provenance.request_id, file.path), path)
        except MissingFile:
            raise InvalidOutput(f"the output file {file.path} is no longer kept") from None
        additions.append(await _upload(file, path, target))
    return additions


async def commit(
    provenance: Provenance,
    target: Target,
    additions: list[CommitOperationAdd],
    head: str,
    directory: Path,
) -> None:
    """Make the files appear, with card and manifest, on top of commit ``head``."""
    try:
        await target.hub.ask(lambda api: _commit(api, provenance, target, additions, head))
    except HubUnavailable:
        # An answer that got lost, or another process that was faster.
        if await open_repository(provenance, target, directory) is not None:
            raise


# -- in the hub's threads -----------------------------------------------------------------------------------


def _open_repository(api: HfApi, provenance: Provenance, target: Target, directory: Path) -> str | None:
    info = _info(api, target.repo)
    if info is None:
        api.create_repo(target.repo, repo_type="dataset", private=target.private, exist_ok=True)
        info = api.dataset_info(target.repo, files_metadata=True, timeout=CALL_SECONDS)
    files = {file.rfilename: file.size or 0 for file in info.siblings or []}
    # The repository is its owner's, who may have put anything there; reading it takes memory.
    if MANIFEST in files and files[MANIFEST] <= 2 * len(manifest(provenance)) + _MANIFEST_ROOM:
        path = api.hf_hub_download(
            target.repo, MANIFEST, repo_type="dataset", revision=info.sha, local_dir=directory
        )
        if is_manifest_of(Path(path).read_bytes(), provenance):
            return None
    if set(files) - _OF_THE_HUB:
        raise HubRefused(f"the hub has a dataset {target.repo} already, and it holds something else")
    if target.private and not info.private:
        raise HubRefused(f"the dataset {target.repo} was to be private, but is there already and public")
    if info.sha is None:
        raise HubUnavailable(f"the hub does not tell the head of {target.repo}")
    return info.sha


def _info(api: HfApi, repo: str) -> DatasetInfo | None:
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return api.dataset_info(repo, files_metadata=True, timeout=CALL_SECONDS)
    except RepositoryNotFoundError:
        # Or the token is refused, which making it tells.
        return None


async def _upload(file: OutputFile, path: Path, target: Target) -> CommitOperationAdd:
    def send(api: HfApi) -> CommitOperationAdd:
        from huggingface_hub import CommitOperationAdd

        addition = CommitOperationAdd(file.path, path)
        api.preupload_lfs_files(target.repo, [addition], repo_type="dataset", num_threads=1)
        return addition

    if await asyncio.to_thread(sha256_of, path) != file.sha256:
        raise InvalidOutput(f"the output file {file.path} was damaged where it was kept")
    addition = await target.hub.ask(send, transfer_seconds(file.size_bytes))
    # What a hub wants inside the commit stays on disk until then; it wants small files alone.
    if addition.path_or_fileobj == b"":
        await asyncio.to_thread(path.unlink)
    return addition


def _commit(
    api: HfApi, provenance: Provenance, target: Target, additions: list[CommitOperationAdd], head: str
) -> None:
    from huggingface_hub import CommitOperationAdd

    words = {"README.md": dataset_card(provenance).encode(), MANIFEST: manifest(provenance)}
    api.create_commit(
        target.repo,
        [*additions, *(CommitOperationAdd(path, content) for path, content in words.items())],
        repo_type="dataset",
        commit_message=f"Simulation {provenance.request_id}",
        parent_commit=head,
    )
