"""What a server keeps of its seeding: secret seeds, what was begun, and what is published."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from collidium.contracts.task import EventRange
from collidium.errors import ConfigurationError, Conflict
from collidium.files import durable
from collidium.files.held import locked

#: Below the data directory, for its owner alone.
DIRECTORY: Final = "seed"
_FILE: Final = "state.json"
_SEED_BITS: Final = 128


@contextmanager
def held(data_dir: Path) -> Iterator[None]:
    """Let no other process seed this server within the context; raises Conflict where one does."""
    directory = data_dir / DIRECTORY
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(directory, wait=False) as is_ours:
        if not is_ours:
            raise Conflict("another `collidium seed` or `collidium challenge create` is running")
        yield


@dataclass(slots=True)
class State:
    """The file ``state.json``; every change is on disk before what it announces is done.

    A run that was killed goes on by it, together with what the hub and the database hold.
    """

    directory: Path
    size: str
    #: Of evaluation sets, in decimal digits.
    seeds: dict[str, str] = field(default_factory=dict)
    #: Accounts, repositories and tasks that a run was about to make or change.
    begun: list[str] = field(default_factory=list)
    #: Challenges that were begun, with their events.
    challenges: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Datasets with ``repo``, ``revision`` and ``events``.
    published: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def open(cls, data_dir: Path, size: str = "") -> State:
        """Read the state, or begin one; ``size`` is kept where there was none.

        Raises ConfigurationError for a file that makes no sense.
        """
        directory = data_dir / DIRECTORY
        try:
            kept: dict[str, Any] = json.loads((directory / _FILE).read_text("utf-8"))
            state = cls(directory, **kept)
            state.size = state.size or size
            return state
        except FileNotFoundError:
            return cls(directory, size)
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"{directory / _FILE} cannot be read: {error}") from error

    def begin(self, name: str) -> None:
        """Note that something is about to be made."""
        if name not in self.begun:
            self.begun.append(name)
            self.save()

    def secret_seed(self, dataset: str, purpose: str) -> int:
        """Return 128 bits for one purpose of an evaluation set, from its random seed."""
        if dataset not in self.seeds:
            self.seeds[dataset] = str(secrets.randbits(_SEED_BITS))
            self.save()
        text = f"{self.seeds[dataset]}\0{purpose}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=_SEED_BITS // 8).digest(), "big")

    def events_of(self, dataset: str) -> EventRange:
        """Return the events of a published dataset."""
        return EventRange.parse(self.published[dataset]["events"])

    def save(self) -> None:
        """Write it to disk."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = asdict(self)
        del kept["directory"]
        durable.replace(self.directory / _FILE, json.dumps(kept, indent=2), mode=0o600)
