"""The hub and account that seeding publishes with, and the state of a run on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collidium.contracts.task import EventRange
from collidium.errors import CollidiumError, ConfigurationError, Conflict
from collidium.files import durable
from collidium.files.held import locked
from collidium.hub.client import Hub
from collidium.hub.sources import find_hub
from collidium.runtime import subprocesses

if TYPE_CHECKING:
    from collidium.settings import Settings

#: The account that submits baselines, on the platform and on a local hub.
ACCOUNT: Final = "baselines"
_TOKEN: Final = "hub-token"  # noqa: S105 -- the name of a file
#: The directory of the state in the data directory, readable only by its owner.
DIRECTORY: Final = "seed"
_FILE: Final = "state.json"
_SEED_BITS: Final = 128


def endpoint_of(settings: Settings) -> str:
    """Return the address of the server's hub, by default the local one at PLATFORM_BACKEND."""
    backend = os.environ.get("PLATFORM_BACKEND") or settings.base_url
    return find_hub(settings.hub_url or f"{backend.rstrip('/')}/hub", "").endpoint


async def hub_problem(endpoint: str, token: str, *, local: bool) -> str | None:
    """Return why publishing on the hub is not possible; None if it is."""
    if not local and not token:
        return f"HF_TOKEN is not set: it needs write access to the hub {endpoint}"
    try:
        if token:
            role = await Hub(endpoint, token).ask(lambda api: _role(api.whoami()))
            return f"the token in HF_TOKEN has no write access to {endpoint}" if role == "read" else None
        await Hub(endpoint, "").ask(lambda api: list(api.list_datasets(limit=1)))
    except RuntimeError as error:
        start = "; run `collidium serve`, and set PLATFORM_BACKEND if it is not at its default port"
        return f"{endpoint}: {error}{start if local else ''}"
    return None


def _role(whoami: dict[str, Any]) -> object:
    token = (whoami.get("auth") or {}).get("accessToken") or {}
    return token.get("role")


async def sign_in(settings: Settings, state: SeedState, *, local: bool) -> str:
    """Return the token for publishing. On a local hub, create the account if needed.

    Raises CollidiumError if the account exists and was not created by an earlier run.
    """
    if not local:
        return find_hub(endpoint_of(settings)).token or ""
    path = state.directory / _TOKEN
    if path.exists():
        return path.read_text("ascii").strip()
    name = f"account {ACCOUNT}"
    if name in state.begun:  # a killed run may have lost the token
        known = {account["name"] for account in await _user("list")}
        made = await _user("add", ACCOUNT, *(["--new-token"] if ACCOUNT in known else []))
    else:
        state.begin(name)
        try:
            made = await _user("add", ACCOUNT)
        except CollidiumError:
            state.begun.remove(name)
            state.save()
            raise
    durable.replace(path, made["token"], mode=0o600)
    return str(made["token"])


def saved_token(settings: Settings, state: SeedState, *, local: bool) -> str:
    """Return the token of an earlier run or of the environment; empty if there is none."""
    path = state.directory / _TOKEN
    if local:
        return path.read_text("ascii").strip() if path.exists() else ""
    return find_hub(endpoint_of(settings)).token or ""


async def _user(*arguments: str) -> Any:
    """Run ``collidium user``, a command of the local hub's plugin."""
    words = [sys.executable, "-P", "-m", "collidium", "user", *arguments, "--json"]
    done = await asyncio.to_thread(subprocesses.run, words, 60)
    if done.returncode:
        raise CollidiumError(f"`collidium user {arguments[0]}` failed: {_detail(done.stderr)}")
    return json.loads(done.stdout)


def _detail(stderr: str) -> str:
    try:
        return str(json.loads(stderr)["detail"])
    except ValueError:
        return stderr.strip()


@contextmanager
def exclusive(data_dir: Path) -> Iterator[None]:
    """Keep other processes from seeding this server. Raises Conflict if one does."""
    directory = data_dir / DIRECTORY
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(directory, wait=False) as is_ours:
        if not is_ours:
            raise Conflict("another `collidium seed` or `collidium challenge create` is running")
        yield


@dataclass(slots=True)
class SeedState:
    """The file ``state.json``. Every change is on disk before the step that it describes begins.

    A killed run is resumed from this file, the hub and the database.
    """

    directory: Path
    size: str
    #: Secret seeds of evaluation sets, in decimal digits.
    seeds: dict[str, str] = field(default_factory=dict)
    #: Accounts, repositories and tasks that a run has begun to create or change.
    begun: list[str] = field(default_factory=list)
    #: Challenges that a run has begun, with their events.
    challenges: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Published datasets, with ``repo``, ``revision`` and ``events``.
    published: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def open(cls, data_dir: Path, size: str = "") -> SeedState:
        """Read the state or create one. ``size`` is used if the state has none.

        Raises ConfigurationError for an invalid file.
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
        """Record that something is about to be created or changed."""
        if name not in self.begun:
            self.begun.append(name)
            self.save()

    def secret_seed(self, dataset: str, purpose: str) -> int:
        """Derive 128 bits for a purpose from the random seed of an evaluation set."""
        if dataset not in self.seeds:
            self.seeds[dataset] = str(secrets.randbits(_SEED_BITS))
            self.save()
        text = f"{self.seeds[dataset]}\0{purpose}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=_SEED_BITS // 8).digest(), "big")

    def events_of(self, dataset: str) -> EventRange:
        """Return the events of a published dataset."""
        return EventRange.parse(self.published[dataset]["events"])

    def save(self) -> None:
        """Write the state to disk."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = asdict(self)
        del kept["directory"]
        durable.replace(self.directory / _FILE, json.dumps(kept, indent=2), mode=0o600)
