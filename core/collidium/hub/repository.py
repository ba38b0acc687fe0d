"""A dataset repository at one commit: its metadata and its files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from collidium.errors import UpstreamError
from collidium.hub.reader import HubReader
from collidium.hub.sources import HubDataset

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_DIGEST: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BLOCK: Final = 1024**2
#: Raised by what a hub answers that makes no sense.
_NONSENSE: Final = (KeyError, TypeError, ValueError, OverflowError, AttributeError)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository: its path there, and what its content must be."""

    path: str
    #: In bytes.
    size: int
    #: 64 hexadecimal digits are the sha256 of the bytes; 40 the sha1 by which git knows a file outside LFS.
    digest: str

    def is_in(self, path: Path) -> bool:
        """Whether this very content is at ``path``; reads all of it."""
        if len(self.digest) == 64:
            hasher = hashlib.sha256()
        else:
            # Git's own name for a file, no protection against forgery.
            hasher = hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        try:
            with path.open("rb", buffering=0) as file:
                while block := file.read(_BLOCK):
                    hasher.update(block)
        except FileNotFoundError:
            return False
        return hasher.hexdigest() == self.digest


@dataclass(frozen=True, slots=True)
class Repository:
    """A dataset repository at one commit."""

    repo: str
    endpoint: str
    #: 40 hexadecimal digits.
    commit: str
    private: bool
    #: Whether its owners decide who may read it.
    gated: bool
    #: As the hub writes it, RFC 3339.
    last_modified: str | None
    tags: tuple[str, ...]
    #: By path.
    files: Mapping[str, HubFile]

    @classmethod
    def read(
        cls,
        hub: HubReader,
        source: HubDataset,
        *,
        is_wanted: Callable[[Repository], bool] = lambda _: True,
    ) -> Repository:
        """Ask the hub for a repository, and for its files if it ``is_wanted`` by its metadata.

        Raises NotFound, Unauthenticated, Forbidden and what :class:`HubReader` raises.
        """
        subject = f"dataset repository {source.repo}"
        at = f"/api/datasets/{source.repo}"
        about = hub.document(f"{at}/revision/{quote(source.revision, safe='')}", subject)
        try:
            commit = str(about["sha"])
            if not _COMMIT.fullmatch(commit):
                raise ValueError(commit)
            found = cls(
                repo=source.repo,
                endpoint=source.endpoint,
                commit=commit,
                private=bool(about.get("private")),
                gated=bool(about.get("gated")),
                last_modified=about.get("lastModified"),
                tags=tuple(map(str, about.get("tags") or ())),
                files={},
            )
            if not is_wanted(found):
                return found
            tree = hub.pages(f"{at}/tree/{commit}", subject, recursive="true")
            return replace(found, files={file.path: file for file in _files(tree)})
        except _NONSENSE as error:
            raise UpstreamError(f"{source.endpoint} gave an invalid response about {subject}") from error

    def find(self, hub: HubReader, path: str) -> HubFile | None:
        """One of the files, of which there may be millions: one page of its directory is held at a time.

        Raises as :meth:`read`.
        """
        folder = quote(path.rpartition("/")[0])
        subject = f"{path} of dataset repository {self.repo}"
        pages = hub.pages(f"/api/datasets/{self.repo}/tree/{self.commit}/{folder}".rstrip("/"), subject)
        try:
            return next((file for file in _files(pages) if file.path == path), None)
        except _NONSENSE as error:
            raise UpstreamError(f"{self.endpoint} gave an invalid response about {subject}") from error

    def address(self, path: str) -> str:
        """Where a file's content is, below the endpoint."""
        return address_of(self.repo, self.commit, path)


def address_of(repo: str, commit: str, path: str) -> str:
    """Where a file of a repository is at a commit, below the hub's endpoint."""
    return f"/datasets/{repo}/resolve/{commit}/{quote(path)}"


def _files(tree: Iterator[dict[str, Any]]) -> Iterator[HubFile]:
    for entry in tree:
        if entry["type"] != "file":
            continue
        path, parts = str(entry["path"]), PurePosixPath(entry["path"]).parts
        if not parts or path != "/".join(parts) or {"..", "/"} & set(parts) or "\0" in path:
            # It becomes a path of this machine.
            raise ValueError(path)
        path.encode()  # raises ValueError for halves of characters, which JSON can hold and names cannot
        large = entry.get("lfs") or {}
        size, digest = int(large.get("size", entry["size"])), str(large.get("oid", entry["oid"]))
        digest = digest.removeprefix("sha256:")
        if size < 0 or not _DIGEST.fullmatch(digest):
            raise ValueError(path)
        yield HubFile(path, size, digest)


def tagged(hub: HubReader, tag: str, limit: int) -> list[dict[str, Any]]:
    """The dataset repositories with a tag, the latest first: ``repo``, ``last_modified``, ``private``."""
    found = hub.document("/api/datasets", "datasets", filter=tag, limit=str(limit), sort="lastModified")
    try:
        return [
            {
                "repo": str(item["id"]),
                "last_modified": item.get("lastModified"),
                "private": bool(item.get("private")),
            }
            for item in found[:limit]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise UpstreamError(f"{hub.endpoint} gave an invalid response about datasets") from error
