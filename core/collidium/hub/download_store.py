"""Storage of downloaded files: the cache, or a directory of the user.

A file gets its final name when it is complete and verified. Until then it is a *part*, locked by the process
that receives it. A part stays after a crash, and the next download resumes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from collidium.errors import Conflict
from collidium.files import durable
from collidium.files.held import delete_older, lock
from collidium.hub.repository import HubFile, Repository

#: Age after which parts in the cache are deleted.
PART_SECONDS: Final = 30 * 86_400


def default_cache() -> Path:
    """Return the default directory of the cache, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "collidium" / "datasets"


class DownloadStore:
    """Files of a repository at one commit, below ``directory`` under their paths in the repository."""

    def __init__(self, directory: Path, metadata: Path) -> None:
        """``metadata`` is the directory of parts and of information about the source."""
        self.directory = directory
        self.metadata = metadata

    def path(self, file: HubFile) -> Path:
        """The path of the file's content."""
        return self.directory / file.path

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        """Whether the file exists with the right size and, with ``verify``, hash. Removes a damaged file."""
        path = self.path(file)
        try:
            sound = path.stat().st_size == file.size and (not verify or file.is_in(path))
        except FileNotFoundError:
            sound = False
        if not sound:
            path.unlink(missing_ok=True)
        return sound

    def claim(self) -> None:
        """Mark the directory as one with files of this commit."""

    @contextmanager
    def part(self, file: HubFile) -> Iterator[IO[bytes] | None]:
        """Open and lock the part of a file; yields None while another process has it."""
        path = self.part_path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+b", buffering=0, opener=_no_link) as part:
            # The process that had it may have renamed or removed it.
            yield part if lock(part.fileno()) and _is_at(part, path) else None

    def part_path(self, file: HubFile) -> Path:
        """The path of the part of a file."""
        return self.metadata / "parts" / f"{file.digest}.part"

    def keep(self, file: HubFile) -> None:
        """Move a complete part to its final path."""
        path = self.path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.part_path(file).replace(path)

    def discard(self, file: HubFile) -> None:
        """Remove the part of a file."""
        self.part_path(file).unlink(missing_ok=True)


class Cache(DownloadStore):
    """A cache by endpoint, each in the layout of ``huggingface_hub``; commits share unchanged files.

    ::

        <cache>/<endpoint>/datasets--<namespace>--<name>/blobs/<digest>            each content once
                                                         snapshots/<commit>/data/… links to them
    """

    def __init__(self, root: Path, repository: Repository) -> None:
        metadata = self.metadata_dir(root, repository.endpoint, repository.repo)
        super().__init__(metadata / "snapshots" / repository.commit, metadata)
        self.directory.mkdir(parents=True, exist_ok=True)
        delete_older(root.glob("*/datasets--*/parts/*.part"), time.time() - PART_SECONDS)

    @staticmethod
    def metadata_dir(root: Path, endpoint: str, repo: str) -> Path:
        """The directory of a repository in the cache."""
        return root / _key(endpoint) / f"datasets--{repo.replace('/', '--')}"

    def path(self, file: HubFile) -> Path:
        return self.metadata / "blobs" / file.digest

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        exists = super().has(file, verify=verify)
        if exists:
            self._link(file)
        return exists

    def keep(self, file: HubFile) -> None:
        super().keep(file)
        self._link(file)

    def _link(self, file: HubFile) -> None:
        link = self.directory / file.path
        target = os.path.relpath(self.path(file), link.parent)
        if link.is_symlink() and os.readlink(link) == target:  # noqa: PTH115 -- the text of the link
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        new = link.with_name(f".{link.name}.{os.getpid()}")
        with suppress(FileExistsError):
            new.symlink_to(target)
        new.replace(link)


class Folder(DownloadStore):
    """A directory of the user with files of one commit of one repository."""

    def __init__(self, directory: Path, repository: Repository) -> None:
        """Raises Conflict when the directory holds another repository or commit."""
        super().__init__(directory, self.metadata_dir(directory))
        self._source = {
            "endpoint": repository.endpoint,
            "repo": repository.repo,
            "commit": repository.commit,
        }
        self._record = self.metadata / "source.json"
        #: Without a record of their source, existing files are verified in full.
        self._is_unknown = not self._record.exists()
        if not self._is_unknown:
            self._check_source()

    @staticmethod
    def metadata_dir(directory: Path) -> Path:
        """The directory of parts and records in a user's directory."""
        return directory / ".collidium" / "download"

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        path = self.path(file)
        if not self._is_unknown or not path.exists():
            return super().has(file, verify=verify)
        if not file.is_in(path):
            raise Conflict(f"{path}: exists already with another content; choose another directory")
        return True

    def claim(self) -> None:
        self._is_unknown = False
        self.metadata.mkdir(parents=True, exist_ok=True)
        durable.replace(self._record, json.dumps(self._source, indent=2) + "\n")

    def _check_source(self) -> None:
        try:
            recorded = json.loads(self._record.read_text(encoding="utf-8"))
        except ValueError:
            recorded = {}
        if recorded != self._source:
            raise Conflict(
                f"{self.directory} holds {recorded.get('repo')} at commit {recorded.get('commit')} of "
                f"{recorded.get('endpoint')}: choose another directory, or give that revision"
            )


def _key(endpoint: str) -> str:
    """A readable directory name that is unique to the endpoint."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", endpoint.partition("://")[2]).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(endpoint.encode()).hexdigest()[:8]}"


def _no_link(path: str, flags: int) -> int:
    """Open without following symbolic links, which other users of a shared cache could plant."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
