"""Metadata and files of a dataset repository at one commit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from collidium.errors import UpstreamError
from collidium.hub.reader import HubReader
from collidium.hub.sources import HubDataset

#: A full commit id.
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_DIGEST: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BLOCK: Final = 1024**2
#: Errors of reading invalid responses.
_INVALID: Final = (KeyError, TypeError, ValueError, OverflowError, AttributeError)


@dataclass(frozen=True, slots=True)
class HubFile:
    """Path, size in bytes and digest of a file in a repository."""

    path: str
    size: int
    #: SHA-256 (64 hexadecimal digits) for LFS files, otherwise git's SHA-1 (40).
    digest: str

    def is_in(self, path: Path) -> bool:
        """Whether the file at ``path`` has this digest."""
        if len(self.digest) == 64:
            hasher = hashlib.sha256()
        else:
            # Git's id of a blob; no protection against forgery.
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
    #: Whether the owners grant access to individual accounts.
    gated: bool
    #: RFC 3339, as the hub sends it.
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
        """Read a repository from the hub, with its files only if ``is_wanted``.

        Raises NotFound, Unauthenticated, Forbidden, and as :class:`HubReader`.
        """
        subject = f"dataset repository {source.repo}"
        path = f"/api/datasets/{source.repo}"
        about = hub.document(f"{path}/revision/{quote(source.revision, safe='')}", subject)
        try:
            commit = str(about["sha"])
            if not COMMIT.fullmatch(commit):
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
            tree = hub.pages(f"{path}/tree/{commit}", subject, recursive="true")
            return replace(found, files={file.path: file for file in _files(tree)})
        except _INVALID as error:
            raise UpstreamError(f"{source.endpoint} sent an invalid response for {subject}") from error

    def record(self) -> dict[str, Any]:
        """Return a JSON object from which :meth:`from_record` reads it."""
        files = [
            {"type": "file", "path": f.path, "size": f.size, "oid": f.digest} for f in self.files.values()
        ]
        return asdict(replace(self, files={})) | {"files": files}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Repository:
        """Raises KeyError, TypeError and ValueError for an invalid record."""
        files = {file.path: file for file in _files(iter(record["files"]))}
        return cls(**{**record, "tags": tuple(record["tags"]), "files": files})

    def find(self, hub: HubReader, path: str) -> HubFile | None:
        """Find a file without reading all files of the repository. Raises as :meth:`read`."""
        folder = quote(path.rpartition("/")[0])
        subject = f"{path} of dataset repository {self.repo}"
        pages = hub.pages(f"/api/datasets/{self.repo}/tree/{self.commit}/{folder}".rstrip("/"), subject)
        try:
            return next((file for file in _files(pages) if file.path == path), None)
        except _INVALID as error:
            raise UpstreamError(f"{self.endpoint} sent an invalid response for {subject}") from error

    def address(self, path: str) -> str:
        """The path of a file's content below the endpoint."""
        return address_of(self.repo, self.commit, path)


def address_of(repo: str, commit: str, path: str) -> str:
    """The path of a file at a commit, below the hub's endpoint."""
    return f"/datasets/{repo}/resolve/{commit}/{quote(path)}"


def _files(tree: Iterator[dict[str, Any]]) -> Iterator[HubFile]:
    for entry in tree:
        if entry["type"] != "file":
            continue
        path, parts = str(entry["path"]), PurePosixPath(entry["path"]).parts
        if not parts or path != "/".join(parts) or {"..", "/"} & set(parts) or "\0" in path:
            # It will become a path on this machine.
            raise ValueError(path)
        path.encode()  # raises ValueError for surrogates, which JSON can hold and file names cannot
        large = entry.get("lfs") or {}
        size, digest = int(large.get("size", entry["size"])), str(large.get("oid", entry["oid"]))
        digest = digest.removeprefix("sha256:")
        if size < 0 or not _DIGEST.fullmatch(digest):
            raise ValueError(path)
        yield HubFile(path, size, digest)


def tagged(hub: HubReader, tag: str, limit: int) -> list[dict[str, Any]]:
    """Return ``repo``, ``last_modified`` and ``private`` of repositories with a tag, the latest first."""
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
        raise UpstreamError(f"{hub.endpoint} sent an invalid response for datasets") from error
