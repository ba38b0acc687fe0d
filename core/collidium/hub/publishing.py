"""Writes a dataset repository on a hub whole: contents first, then one commit that shows them."""

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

#: Files that the hub itself puts into a new repository.
OF_THE_HUB: Final = frozenset({".gitattributes"})

#: Called with the bytes of a file that were sent so far.
Sent = Callable[[int], None]


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


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a repository at its newest commit."""

    #: That commit.
    head: str
    #: Every path but those of the hub itself, with its size.
    files: Mapping[str, int]
    #: The manifest, where there is one that is not too large to be read.
    manifest: bytes | None
    private: bool


async def open_repository(target: Target, directory: Path, manifest: str, limit: int) -> Contents:
    """Read what the repository holds, made when absent; the file ``manifest`` of at most ``limit`` bytes
    passes through ``directory``.

    Raises HubUnavailable and HubRefused.
    """
    return await target.hub.ask(lambda api: _open(api, target, directory, manifest, limit))


async def look(target: Target, directory: Path, manifest: str, limit: int) -> Contents | None:
    """What the repository holds; None where there is none. Raises HubUnavailable and HubRefused."""

    def read(api: HfApi) -> Contents | None:
        info = _info(api, target.repo)
        return None if info is None else _contents(api, target, info, directory, manifest, limit)

    return await target.hub.ask(read)


async def upload(
    target: Target, path_in_repo: str, path: Path, size_bytes: int, sent: Sent | None = None
) -> CommitOperationAdd:
    """Send the content of a file, unless the hub has it; nothing is seen of it before it is committed.

    A hub may want it inside the commit instead, small files alone: then it must stay until then.
    """

    def send(api: HfApi) -> CommitOperationAdd:
        from huggingface_hub import CommitOperationAdd

        with _Watched(path, sent) as content:
            addition = CommitOperationAdd(path_in_repo, content)
            content.watch = True
            api.preupload_lfs_files(target.repo, [addition], repo_type="dataset", num_threads=1)
        return addition if is_sent(addition) else CommitOperationAdd(path_in_repo, path)

    return await target.hub.ask(send, transfer_seconds(size_bytes))


def is_sent(addition: CommitOperationAdd) -> bool:
    """Whether the hub has the content already, so that the file is not needed any more."""
    return addition.path_or_fileobj == b""


async def commit(
    target: Target,
    head: str,
    message: str,
    additions: Sequence[CommitOperationAdd],
    texts: Mapping[str, bytes],
    removed: Iterable[str] = (),
) -> str:
    """Make files appear, and texts by their paths, and others go, on top of commit ``head``.

    Returns the new commit. Raises HubUnavailable, also where ``head`` is no longer the newest, and
    HubRefused.
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


# -- tags: each is given once and stays where it is ---------------------------------------------------------


async def tags_of(target: Target) -> dict[str, str]:
    """The tags of a repository, each with its commit."""

    def ask(api: HfApi) -> dict[str, str]:
        refs = api.list_repo_refs(target.repo, repo_type="dataset")
        return {tag.name: tag.target_commit for tag in refs.tags}

    return await target.hub.ask(ask)


async def refuse_tag_of_older(tag: str | None, there: Contents | None, target: Target) -> None:
    """Raise Conflict where a version before the newest has the tag: before any work."""
    if tag is not None and there is not None and (await tags_of(target)).get(tag, there.head) != there.head:
        raise _taken(tag, target)


async def refuse_known_tag(tag: str | None, there: Contents | None, target: Target) -> None:
    """Raise Conflict where any version has the tag: before a new one is made."""
    if tag is not None and there is not None and tag in await tags_of(target):
        raise _taken(tag, target)


async def put_tag(tag: str, revision: str, target: Target) -> None:
    """Give a commit a tag, which it may have. Raises Conflict where another commit has it."""

    def make(api: HfApi) -> None:
        api.create_tag(target.repo, tag=tag, revision=revision, repo_type="dataset", exist_ok=True)

    if tag not in await tags_of(target):
        await target.hub.ask(make)
    if (await tags_of(target)).get(tag) != revision:
        raise _taken(tag, target)


def _taken(tag: str, target: Target) -> Conflict:
    return Conflict(f"{target.repo} has a tag {tag} already, of another version: choose another one")


# -- in the hub's threads -----------------------------------------------------------------------------------


class _Watched(io.BufferedReader):
    """A file that reports how far it was read."""

    def __init__(self, path: Path, sent: Sent | None) -> None:
        super().__init__(io.FileIO(path))
        self.watch = False
        self._sent = sent

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        if self.watch and self._sent is not None:
            self._sent(self.tell())
        return content


def _open(api: HfApi, target: Target, directory: Path, manifest: str, limit: int) -> Contents:
    info = _info(api, target.repo)
    if info is None:
        api.create_repo(target.repo, repo_type="dataset", private=target.private, exist_ok=True)
        info = api.dataset_info(target.repo, files_metadata=True, timeout=CALL_SECONDS)
    return _contents(api, target, info, directory, manifest, limit)


def _contents(
    api: HfApi, target: Target, info: DatasetInfo, directory: Path, manifest: str, limit: int
) -> Contents:
    if info.sha is None:
        raise HubUnavailable(f"the hub does not give the head of {target.repo}")
    files = {file.rfilename: file.size or 0 for file in info.siblings or []}
    content = None
    # The repository is its owner's, who may have put anything there; reading it takes memory.
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
        # Or the token is refused, which shows when the repository is made.
        return None
