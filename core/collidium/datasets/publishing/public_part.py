"""The public columns of events that are scored. All other columns are withheld, including unknown ones.

:mod:`~collidium.datasets.publishing.public_order` ensures that the order of lists reveals nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.errors import UnusableDataset

#: What a detector measures, and what is reconstructed from that alone, by canonical column names. The time of
#: a tracker hit is withheld: it is the exact time of the simulation.
PUBLIC: Final[Mapping[str, tuple[str, ...]]] = {
    "tracker_hits": (
        *("volume_id", "layer_id", "surface_id", "module_id", "cell_id", "detector"),
        *("x", "y", "z", "hit_id"),
    ),
    "calo_hits": ("detector", "cell_id", "x", "y", "z", "total_energy"),
    "tracks": ("theta", "phi", "qop", "d0", "z0", "track_id", "hit_ids"),
    "jets": ("pt", "eta", "phi", "mass", "jet_id", "constituents"),
    "particles": (),
}
#: The table of a mix with the channel of each event; it is not public.
CHANNELS: Final = "channels"
#: Table -> a column that must exist for truth to be withheld.
_TRUTH: Final = {"tracker_hits": "particle_id"}


def withheld_columns(table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return those of the canonical ``columns`` that are not public."""
    public = PUBLIC.get(table, ())
    return tuple(name for name in columns if name != "event_id" and name not in public)


def without_truth(table: str, events: pa.Table) -> pa.Table:
    """Replace all values that are not public by nulls. Columns have canonical names."""
    for name in withheld_columns(table, events.column_names):
        index = events.schema.get_field_index(name)
        field = events.schema.field(index)
        events = events.set_column(index, field, pa.nulls(events.num_rows, field.type))
    return events


def refuse_withheld(name: str, table: pa.Table) -> None:
    """Raise UnusableDataset if the truth of an event is withheld. Columns have canonical names."""
    columns = withheld_columns(name, table.column_names)
    if not columns:
        return
    gone = np.logical_and.reduce([np.asarray(pc.is_null(table.column(column))) for column in columns])
    if gone.any():
        event = table.column("event_id")[int(np.flatnonzero(gone)[0])]
        raise UnusableDataset(
            f"table {name}: event {event} has no {columns[0]}, as a benchmark's truth is withheld. Submit "
            "predictions for these events, and score on others here, such as the training events that "
            "`collidium tasks NAME` shows. Operators import what `collidium datasets publish --truth-output` "
            "wrote."
        )


def refuse_without_truth(name: str, table: pa.Table) -> None:
    """Raise UnusableDataset if a table has no truth to withhold. Columns have canonical names."""
    column = _TRUTH.get(name)
    if column is not None and (column not in table.column_names or table.column(column).null_count):
        raise UnusableDataset(f"table {name} has no truth to withhold there: column {column} is not filled")
