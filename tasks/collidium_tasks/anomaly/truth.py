"""Which channel is a signal, and the truth table that says it of each event."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import list_lengths
from collidium.contracts.task import Tables, UnusableTruth

STANDARD_MODEL: Final = frozenset({"ttbar", "ggf", "dihiggs", "diphoton", "jets", "zmumu", "zee"})
BEYOND: Final = frozenset({"higgs_portal", "susy_gmsb", "hidden_valley", "zprime"})


def prepare(tables: Tables) -> dict[str, pa.Table]:
    """One row per event: ``event_id`` and ``signal``, whether it is beyond the Standard Model.

    ``channels`` needs ``channel``, a list with one name for each event, as a mix of channels writes it.
    Raises :class:`~collidium.contracts.task.UnusableTruth` where that is otherwise, where a channel is of
    neither kind, and where an event stands twice.
    """
    table = tables["channels"]
    if "channel" not in table.column_names:
        raise UnusableTruth("table channels lacks channel")
    events = np.asarray(table.column("event_id"))
    if np.any(np.diff(events.astype(np.int64)) <= 0):
        raise UnusableTruth("table channels: events must rise, each there once")
    not_one = np.flatnonzero(list_lengths(table, "channel") != 1)
    if len(not_one):
        raise UnusableTruth(f"table channels: event {events[not_one[0]]} must have one channel")
    channel = pc.list_flatten(table.column("channel"))
    names = set(channel.unique().to_pylist())
    if unknown := names - STANDARD_MODEL - BEYOND:
        listed = ", ".join(sorted(map(str, unknown)))
        raise UnusableTruth(f"table channels: it is not known whether {listed} is beyond the Standard Model")
    signal = pc.is_in(channel, pa.array(sorted(BEYOND), channel.type))
    return {"channels": pa.table({"event_id": pa.array(events, pa.uint32()), "signal": signal})}
