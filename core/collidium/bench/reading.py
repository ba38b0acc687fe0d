"""What a loader is asked for, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

#: One row per event: a table, pieces of one, or columns by name.
Loaded = pa.Table | Iterable[pa.Table | pa.RecordBatch] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """Events that are to be read, and where from."""

    #: A directory of this machine that has the repository's layout; streaming: the repository's address.
    source: str
    config: str
    table: str
    events: range
    #: The parquet files that hold the events, and maybe others: paths; streaming: addresses, which answer
    #: requests for ranges of bytes.
    shards: tuple[str, ...]
    #: Whether they are read over HTTP; nothing of them may then be kept on this machine.
    streaming: bool
    #: To be sent as ``Authorization: Bearer …`` when streaming; None: nothing.
    token: str | None = field(default=None, repr=False)


#: Reads all columns of all events, and no others.
Loader = Callable[[Reading], Loaded]
