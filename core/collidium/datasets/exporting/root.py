"""Tables of a dataset as trees of a ROOT file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, is_number, lengths_of
from collidium.errors import ConfigurationError, UnusableDataset


def write_trees(file: Path, blocks: Iterable[Mapping[str, pa.Table]]) -> None:
    """Write a tree for each table, with an entry for each event.

    A list column becomes a ragged branch, with its length in branch ``n<column>``. Lists of lists are
    concatenated per event, and branch ``<column>_lengths`` has the length of each. Withheld lists are empty.
    Half floats become floats; columns of :func:`left_out` have no branch.

    Parameters
    ----------
    file
        The file, which is overwritten.
    blocks
        Rows of some events by table. All blocks have the same tables and columns.

    Raises
    ------
    ConfigurationError
        If uproot is not installed.
    UnusableDataset
        For integers with nulls, for which ROOT has no value.
    """
    try:
        import awkward
        import uproot
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{error.name} is not installed: pip install 'collidium[root]'") from error
    trees: dict[str, Any] = {}
    with uproot.recreate(file) as output:
        for block in blocks:
            for table, rows in block.items():
                branches = _branches(table, rows, awkward)
                if table not in trees:
                    types = {name: awkward.type(branch) for name, branch in branches.items()}
                    trees[table] = output.mktree(table, {name: kind.content for name, kind in types.items()})
                trees[table].extend(branches)


def left_out(schemas: Mapping[str, pa.Schema]) -> list[str]:
    """Return the columns of tables, as ``table.column (type)``, that are no numbers or lists of numbers."""
    return [
        f"{table}.{field.name} ({field.type})"
        for table, schema in schemas.items()
        for field in schema
        if not _is_branch(field.type)
    ]


def _is_branch(kind: Any) -> bool:
    for _ in range(2):
        kind = kind.value_type if is_list(kind) else kind
    return is_number(kind)


def _branches(table: str, rows: pa.Table, awkward: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in rows.column_names:
        column: Any = rows.column(name)
        if not _is_branch(column.type):
            continue
        if not is_list(column.type):
            found[name] = awkward.Array(_numbers(table, name, column))
            continue
        lengths, values = lengths_of(column), pc.list_flatten(column)
        if is_list(values.type):
            inner = lengths_of(values)
            found[f"{name}_lengths"] = awkward.unflatten(inner.astype(np.int32), lengths)
            offsets = np.concatenate([[0], np.cumsum(inner)])
            ends = np.cumsum(lengths)
            lengths, values = offsets[ends] - offsets[ends - lengths], pc.list_flatten(values)
        found[name] = awkward.unflatten(_numbers(table, name, values), lengths)
    return found


def _numbers(table: str, name: str, values: Any) -> npt.NDArray[Any]:
    if values.null_count and not pa.types.is_floating(values.type):
        raise UnusableDataset(f"table {table}: column {name} has nulls, which ROOT cannot hold as integers")
    numbers = np.asarray(values)
    return numbers.astype(np.float32) if numbers.dtype == np.float16 else numbers
