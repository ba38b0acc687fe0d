"""The loader that comes with the platform, and the import of another."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.errors import ConfigurationError
from collidium.scoring.bench import Loader, Reading

if TYPE_CHECKING:
    from collidium.hub.reader import HubReader

#: What the platform's own is called.
OWN: Final = "collidium.datasets.load"


def load(reading: Reading) -> pa.Table:
    """The platform's own: :func:`collidium.datasets.load`, and the same by ranges of bytes when streaming."""
    from collidium import datasets

    if not reading.streaming:
        return datasets.load(reading.source, reading.config, reading.table, reading.events)
    from collidium.hub.reader import HubReader

    endpoint = reading.source.partition("/datasets/")[0]
    with HubReader(endpoint, reading.token) as hub:
        shards = [_RemoteShard(hub, address.removeprefix(endpoint)) for address in reading.shards]
        events = EventRange(reading.events.start, reading.events.stop)
        return datasets.EventTable(reading.table, shards).load(events)


@dataclass(frozen=True, slots=True)
class _RemoteShard:
    """A parquet file on a hub, read by ranges of bytes; ``path`` is its address below the hub's."""

    hub: HubReader
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def open(self) -> pa.NativeFile:
        from collidium.hub.reader import RemoteFile

        return pa.PythonFile(RemoteFile(self.hub, self.path), mode="r")


def find(address: str) -> Loader:
    """The function that ``module:function`` names; modules of the current directory are found, too.

    Raises ConfigurationError where there is none.
    """
    module, colon, name = address.partition(":")
    if not (module and colon and name):
        raise ConfigurationError(f"a loader is named MODULE:FUNCTION, not {address!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise ConfigurationError(f"the loader {address} cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigurationError(f"module {module} has no function {name}")
    return cast(Loader, found)
