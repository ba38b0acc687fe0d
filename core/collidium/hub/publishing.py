"""Atomic changes of a dataset repository on a hub: contents are uploaded first, then committed at once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.errors import Conflict
from collidium.hub.client import CALL_SECONDS, Hub, HubUnavailable, transfer_seconds

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.hf_api import DatasetInfo

#: Files that the hub adds to a new repository.
OF_THE_HUB: Final = frozenset({".gitattributes"})

#: Called with the bytes of a file sent so far.
Sent = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class PublishingTarget:
    """A repository ``namespace/name`` on a hub, accessed with its owner's token."""

    hub: Hub
    repo: str
    private: bool

    @property
    def url(self) -> str:
        """The page of the repository."""
        return url_of(self.hub.endpoint, self.repo)


def url_of(endpoint: str, repo: str) -> str:
    """Return the page of a dataset repository on the hub at ``endpoint``."""
    return f"{endpoint}/datasets/{repo}"


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a repository at its newest commit."""

    head: str
    #: Sizes by path, without :data:`OF_THE_HUB`.
    files: Mapping[str, int]
    #: None if it is missing or too large.
    manifest: bytes | None
    private: bool


async def open_repository(target: PublishingTarget, directory: Path, manifest: str, limit: int) -> Contents:
    """Read the contents of the repository, and create it if it does not exist.

    The file ``manifest`` is read if it has at most ``limit`` bytes; ``directory`` is for temporary files.
    Raises HubUnavailable and HubRefused.
    """

    def read(api: HfApi) -> Contents:
        info = _info(api, target.repo)
        if info is None:
            api.create_repo(target.repo, repo_type="dataset", private=target.private, exist_ok=True)
            info = api.dataset_info(target.repo, files_metadata=True, timeout=CALL_SECONDS)
        return _contents(api, target, info, directory, manifest, limit)

    return await target.hub.ask(read)


async def read_repository(
    target: PublishingTarget, directory: Path, manifest: str, limit: int
) -> Contents | None:
    """Read the contents of the repository as :func:`open_repository`; None if it does not exist."""

    def read(api: HfApi) -> Contents | None:
        info = _info(api, target.repo)
        return None if info is None else _contents(api, target, info, directory, manifest, limit)

    return await target.hub.ask(read)


async def upload(
    target: PublishingTarget, path_in_repo: str, path: Path, size_bytes: int, sent: Sent | None = None
) -> CommitOperationAdd:
    """Upload the content of a file unless the hub has it; it becomes visible when it is committed.

    A hub may want a small file inside the commit instead: then the file must exist until the commit, see
    :func:`is_sent`.
    """

    def send(api: HfApi) -> CommitOperationAdd:
        from huggingface_hub import CommitOperationAdd

        with _ReportingReader(path, sent) as content:
            addition = CommitOperationAdd(path_in_repo, content)
            content.is_reporting = True
            api.preupload_lfs_files(target.repo, [addition], repo_type="dataset", num_threads=1)
        return addition if is_sent(addition) else CommitOperationAdd(path_in_repo, path)

    return await target.hub.ask(send, transfer_seconds(size_bytes))


def is_sent(addition: CommitOperationAdd) -> bool:
    """Whether the hub has the content, so that the file is no longer needed."""
    return addition.path_or_fileobj == b""


async def commit(
    target: PublishingTarget,
    head: str,
    message: str,
    additions: Sequence[CommitOperationAdd],
    texts: Mapping[str, bytes],
    removed: Iterable[str] = (),
) -> str:
    """Commit additions, texts by path and removals on top of commit ``head``; returns the new commit.

    Raises HubUnavailable, also if ``head`` is no longer the newest commit, and HubRefused.
    """

    def make(api: HfApi) -> str:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        made = api.create_commit(
            target.repo,
            [
                *additions,
                *(CommitOperationAdd(path, content) for path, content in texts.items()),
                *(CommitOperationDelete(path) for path in removed),
            ],
            repo_type="dataset",
            commit_message=message,
            parent_commit=head,
        )
        return str(made.oid)

    return await target.hub.ask(make)


# -- tags, which are never moved ---------------------------------------------------------


async def tags_of(target: PublishingTarget) -> dict[str, str]:
    """Return the commits of a repository's tags."""

    def ask(api: HfApi) -> dict[str, str]:
        refs = api.list_repo_refs(target.repo, repo_type="dataset")
        return {tag.name: tag.target_commit for tag in refs.tags}

    return await target.hub.ask(ask)


async def check_tag(tag: str | None, existing: Contents | None, target: PublishingTarget) -> None:
    """Raise Conflict if another commit than the head has the tag."""
    if tag is None or existing is None:
        return
    if (await tags_of(target)).get(tag, existing.head) != existing.head:
        raise _tag_exists(tag, target)


async def check_new_tag(tag: str | None, existing: Contents | None, target: PublishingTarget) -> None:
    """Raise Conflict if any commit has the tag."""
    if tag is not None and existing is not None and tag in await tags_of(target):
        raise _tag_exists(tag, target)


async def put_tag(tag: str, revision: str, target: PublishingTarget) -> None:
    """Tag a commit, unless it has the tag. Raises Conflict if another commit has it."""

    def make(api: HfApi) -> None:
        api.create_tag(target.repo, tag=tag, revision=revision, repo_type="dataset", exist_ok=True)

    if tag not in await tags_of(target):
        await target.hub.ask(make)
    if (await tags_of(target)).get(tag) != revision:
        raise _tag_exists(tag, target)


def _tag_exists(tag: str, target: PublishingTarget) -> Conflict:
    return Conflict(f"{target.repo} has a tag {tag} already, of another version: choose another one")


# -- in the hub's threads -----------------------------------------------------------------------------------


class _ReportingReader(io.BufferedReader):
    """A file that reports its position after each read."""

    def __init__(self, path: Path, sent: Sent | None) -> None:
        super().__init__(io.FileIO(path))
        self.is_reporting = False
        self._sent = sent

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        if self.is_reporting and self._sent is not None:
            self._sent(self.tell())
        return content


def _contents(
    api: HfApi, target: PublishingTarget, info: DatasetInfo, directory: Path, manifest: str, limit: int
) -> Contents:
    if info.sha is None:
        raise HubUnavailable(f"the hub does not report the head of {target.repo}")
    files = {file.rfilename: file.size or 0 for file in info.siblings or []}
    content = None
    # The owner may have put anything there, and reading it takes memory.
    if manifest in files and files[manifest] <= limit:
        path = api.hf_hub_download(
            target.repo, manifest, repo_type="dataset", revision=info.sha, local_dir=directory
        )
        content = Path(path).read_bytes()
    own = {path: size for path, size in files.items() if path not in OF_THE_HUB}
    return Contents(info.sha, own, content, bool(info.private))


def _info(api: HfApi, repo: str) -> DatasetInfo | None:
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return api.dataset_info(repo, files_metadata=True, timeout=CALL_SECONDS)
    except RepositoryNotFoundError:
        # Or the token is rejected, which create_repo() reports.
        return None
