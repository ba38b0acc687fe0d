"""Where downloaded files are: in the cache, or in a directory that the user named.

A file gets its name when it is whole and checked. Until then it is a *part*, locked by the process that
receives it; the part of a killed process stays, and the next download appends to it.
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

#: How long a download that was broken off can be resumed from the cache.
PART_SECONDS: Final = 30 * 86_400


def default_cache() -> Path:
    """The directory of the cache unless another is given, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "collidium" / "datasets"


class DownloadStore:
    """Files of a repository at one commit, below ``directory`` as they lie in the repository."""

    def __init__(self, directory: Path, metadata: Path) -> None:
        """``metadata`` is the directory of parts and notes."""
        self.directory = directory
        self.metadata = metadata

    def path(self, file: HubFile) -> Path:
        """Where the file's content is kept."""
        return self.directory / file.path

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        """Whether the file is there with its size; with ``verify`` all of it is read and checked.

        A damaged one is removed.
        """
        path = self.path(file)
        try:
            sound = path.stat().st_size == file.size and (not verify or file.is_in(path))
        except FileNotFoundError:
            sound = False
        if not sound:
            path.unlink(missing_ok=True)
        return sound

    def claim(self) -> None:
        """Record that files of this commit, and no others, are kept here."""

    @contextmanager
    def part(self, file: HubFile) -> Iterator[IO[bytes] | None]:
        """The part of a file, locked, with what there is of it; None while another process has it."""
        path = self.part_path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+b", buffering=0, opener=_no_link) as part:
            # The process that had it before may have given it its name, or removed it.
            yield part if lock(part.fileno()) and _is_at(part, path) else None

    def part_path(self, file: HubFile) -> Path:
        """Where the part of a file is."""
        return self.metadata / "parts" / f"{file.digest}.part"

    def keep(self, file: HubFile) -> None:
        """Give a part that is whole its name."""
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
        folder = f"datasets--{repository.repo.replace('/', '--')}"
        metadata = root / _key(repository.endpoint) / folder
        super().__init__(metadata / "snapshots" / repository.commit, metadata)
        self.directory.mkdir(parents=True, exist_ok=True)
        delete_older(root.glob("*/datasets--*/parts/*.part"), time.time() - PART_SECONDS)

    def path(self, file: HubFile) -> Path:
        return self.metadata / "blobs" / file.digest

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        there = super().has(file, verify=verify)
        if there:
            self._link(file)
        return there

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
    """A directory of the user's with files of one commit of one repository."""

    def __init__(self, directory: Path, repository: Repository) -> None:
        """Raises Conflict when the directory holds another repository or commit."""
        super().__init__(directory, directory / ".collidium" / "download")
        self._source = {
            "endpoint": repository.endpoint,
            "repo": repository.repo,
            "commit": repository.commit,
        }
        self._note = self.metadata / "source.json"
        #: Without a note of where they are from, files that are there are checked in full.
        self._is_unknown = not self._note.exists()
        if not self._is_unknown:
            self._refuse_another()

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        path = self.path(file)
        if not self._is_unknown or not path.exists():
            return super().has(file, verify=verify)
        if not file.is_in(path):
            raise Conflict(f"{path}: is there already and is another file; choose another directory")
        return True

    def claim(self) -> None:
        self._is_unknown = False
        self.metadata.mkdir(parents=True, exist_ok=True)
        durable.replace(self._note, json.dumps(self._source, indent=2) + "\n")

    def _refuse_another(self) -> None:
        try:
            there = json.loads(self._note.read_text(encoding="utf-8"))
        except ValueError:
            there = {}
        if there != self._source:
            raise Conflict(
                f"{self.directory} holds {there.get('repo')} at commit {there.get('commit')} of "
                f"{there.get('endpoint')}: choose another directory, or give that revision"
            )


def _key(endpoint: str) -> str:
    """A directory name that a person recognises and no other endpoint has."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", endpoint.partition("://")[2]).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(endpoint.encode()).hexdigest()[:8]}"


def _no_link(path: str, flags: int) -> int:
    """Open no symbolic link: who may write to a shared cache must not choose which file is written to."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
