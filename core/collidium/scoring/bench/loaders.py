"""The built-in loader, and import of others."""

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

#: Name of the built-in loader.
OWN: Final = "collidium.datasets.load"


def load(reading: Reading) -> pa.Table:
    """The built-in loader: :func:`collidium.datasets.load`; when streaming, by ranges of bytes."""
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
    """Import a loader by ``module:function``, also from the current directory; raises ConfigurationError."""
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
