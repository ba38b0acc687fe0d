"""Hashes of the public rows of events, by which a copy of an event is recognised.

A hash is of what a detector measures, rounded: it does not depend on the event's id, the order of rows, their
ids, the types of columns, or the last digits of values. Columns have canonical names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, lengths_of
from collidium.errors import UnusableDataset

Hashes = npt.NDArray[np.uint64]

#: Steps of a logarithmic scale, for energies and transverse momenta: 32 for a factor of two.
_LOG: Final = "log"
#: Table -> the step that each of the hashed columns is rounded to, in its unit (mm or radian). Unrelated
#: events share next to no rows, even with 200 pileup collisions; a copy that is perturbed below a step shares
#: most.
_STEPS: Final[Mapping[str, Mapping[str, float | str]]] = {
    "tracker_hits": {"x": 0.1, "y": 0.1, "z": 0.1},
    "calo_hits": {"x": 1.0, "y": 1.0, "z": 1.0, "total_energy": _LOG},
    "tracks": {"theta": 1e-3, "phi": 1e-3, "z0": 0.1},
    "jets": {"pt": _LOG, "eta": 1e-3, "phi": 1e-3},
}
#: The hashed columns of each table.
HASHED: Final[Mapping[str, tuple[str, ...]]] = {table: tuple(steps) for table, steps in _STEPS.items()}
#: The last bits of a hash are the number of its table in :data:`HASHED`.
TABLE_BITS: Final = 2
_TABLE_MASK: Final = np.uint64((1 << TABLE_BITS) - 1)
_LIMIT: Final = float(2**40)


def table_numbers(hashes: Hashes) -> Hashes:
    """Return the number of the table of each hash."""
    return hashes & _TABLE_MASK


def hashes_of(name: str, table: pa.Table) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Return a hash of each row of a table's events, and the edges of events.

    Parameters
    ----------
    name : str
        One of :data:`HASHED`.
    table : pyarrow.Table
        A list of values for each event, in the columns of :data:`HASHED`.

    Raises
    ------
    UnusableDataset
        A column does not hold lists of numbers, or columns have lists of different lengths.
    """
    columns = [table.column(column) for column in HASHED[name]]
    try:
        lengths = [np.asarray(lengths_of(column)) for column in columns]
        values = [_numbers(column) for column in columns]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnusableDataset(f"table {name}: its rows cannot be compared: {error}") from error
    if any(not np.array_equal(one, lengths[0]) for one in lengths[1:]):
        raise UnusableDataset(f"table {name}: its columns have lists of different lengths")
    hashes = np.full(len(values[0]), len(name), np.uint64)
    for column, step in zip(values, _STEPS[name].values(), strict=True):
        hashes = mixed(hashes ^ _rounded(column, step))
    hashes = (hashes & ~_TABLE_MASK) | np.uint64(list(HASHED).index(name))
    return hashes, np.concatenate([[0], np.cumsum(lengths[0])]).astype(np.int64)


def mixed(values: Hashes) -> Hashes:
    """Return a permutation of 64-bit integers that looks random (the finaliser of SplitMix64).

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _numbers(column: Any) -> npt.NDArray[np.float64]:
    if not is_list(column.type):
        raise TypeError("a column does not hold lists")
    flat = pc.list_flatten(column)
    if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type) or pa.types.is_null(flat.type)):
        raise TypeError(f"a column holds {flat.type}")
    return np.asarray(flat.cast(pa.float64(), safe=False), np.float64)


def _rounded(values: npt.NDArray[np.float64], step: float | str) -> Hashes:
    with np.errstate(all="ignore"):
        scaled = np.log2(np.abs(values)) * 32 if isinstance(step, str) else values / step
    whole = np.rint(np.clip(np.nan_to_num(scaled, nan=_LIMIT), -_LIMIT, _LIMIT))
    return whole.astype(np.int64).view(np.uint64)
