"""Where downloaded files stand: in the cache, or in a directory that the user named.

A file gets its name when it is whole and checked. Until then it is a *part* beside, locked by whoever is
receiving it; what a killed process has received stays, and the next one goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from collidium.datasets.fetching.footers import Footer, read_footer, remember, remembered
from collidium.errors import Conflict
from collidium.files import durable
from collidium.files.locks import lock

if TYPE_CHECKING:
    from collidium.hub.repository import HubFile, Repository


def default_cache() -> Path:
    """Where downloads are kept unless told otherwise, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "collidium" / "datasets"


class Shelf(ABC):
    """Files of a repository at one commit, below :attr:`directory` as they lie in the repository."""

    directory: Path
    #: For parts, footers and notes.
    backroom: Path

    @abstractmethod
    def place(self, file: HubFile) -> Path:
        """Where the file's content is kept."""

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        """Whether the file is there with its size; with ``verify`` all of it is read and checked.

        One that is damaged is taken away.
        """
        place = self.place(file)
        sound = file.content.is_in(place) if verify else file.content.may_be_in(place)
        if not sound:
            place.unlink(missing_ok=True)
        return sound

    def claim(self) -> None:  # noqa: B027 -- most need none
        """From now on files of this commit, and no others, are put here."""

    @contextmanager
    def part(self, file: HubFile) -> Iterator[IO[bytes] | None]:
        """The part of a file, locked, with what there is of it; None while another process has it."""
        path = self._part(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+b", buffering=0, opener=_no_link) as part:
            # Whoever had it before may have given it its name, or thrown it away.
            yield part if lock(part.fileno()) and _is_at(part, path) else None

    def keep(self, file: HubFile) -> None:
        """Give a part that is whole its name."""
        place = self.place(file)
        place.parent.mkdir(parents=True, exist_ok=True)
        self._part(file).replace(place)

    def discard(self, file: HubFile) -> None:
        """Throw away what there is of a file."""
        self._part(file).unlink(missing_ok=True)

    def footer(self, file: HubFile) -> Footer | None:
        """What is known of a shard's content without asking the hub."""
        digest = file.content.digest
        if known := remembered(self.backroom / "footers", digest):
            return known
        if not self.has(file):
            return None
        footer = read_footer(self.place(file))
        self.remember(file, footer)
        return footer

    def remember(self, file: HubFile, footer: Footer) -> None:
        """Keep a footer for the next time."""
        remember(self.backroom / "footers", file.content.digest, footer)

    def _part(self, file: HubFile) -> Path:
        return self.backroom / "parts" / f"{file.content.digest}.part"


class Cache(Shelf):
    """Keyed by endpoint, repository and commit; commits share files that did not change.

    ::

        <cache>/<endpoint>/<namespace>--<name>/contents/<digest>           each content once
                                               commits/<commit>/data/…     links to them
    """

    def __init__(self, root: Path, repository: Repository) -> None:
        self.backroom = root / _key(repository.endpoint) / repository.repo.replace("/", "--")
        self.directory = self.backroom / "commits" / repository.commit
        self.directory.mkdir(parents=True, exist_ok=True)

    def place(self, file: HubFile) -> Path:
        return self.backroom / "contents" / file.content.digest

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
        target = os.path.relpath(self.place(file), link.parent)
        if link.is_symlink() and os.readlink(link) == target:  # noqa: PTH115 -- the text of the link
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        beside = link.with_name(f".{link.name}.{os.getpid()}")
        with suppress(FileExistsError):
            beside.symlink_to(target)
        beside.replace(link)


class Folder(Shelf):
    """A directory of the user's that holds one commit of one repository, and nothing twice."""

    def __init__(self, directory: Path, repository: Repository) -> None:
        """Raises Conflict when the directory holds another repository or commit."""
        self.directory = directory
        self.backroom = directory / ".collidium" / "download"
        self._source = {
            "endpoint": repository.endpoint,
            "repo": repository.repo,
            "commit": repository.commit,
        }
        self._note = self.backroom / "source.json"
        #: Files that nobody says where they are from are checked in full.
        self._strange = not self._note.exists()
        if not self._strange:
            self._refuse_another()

    def place(self, file: HubFile) -> Path:
        return self.directory / file.path

    def has(self, file: HubFile, *, verify: bool = False) -> bool:
        place = self.place(file)
        if not self._strange or not place.exists():
            return super().has(file, verify=verify)
        if not file.content.is_in(place):
            raise Conflict(f"{place}: is there already and is another file; choose another directory")
        return True

    def claim(self) -> None:
        self._strange = False
        self.backroom.mkdir(parents=True, exist_ok=True)
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
    """A name for a directory that a person recognises and no other endpoint has."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", endpoint.partition("://")[2]).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(endpoint.encode()).hexdigest()[:8]}"


def _no_link(path: str, flags: int) -> int:
    """Whoever may write to a shared cache must not choose which file of ours is written over."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
