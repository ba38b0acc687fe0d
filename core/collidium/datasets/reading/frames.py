"""Arrow tables as what other libraries work with. None of them is needed until it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Literal, get_args

import pyarrow as pa

from collidium.errors import InvalidInput

Frame = Literal["arrow", "polars", "pandas", "awkward"]

FRAMES: Final[tuple[Frame, ...]] = get_args(Frame)


def convert(table: pa.Table, to: Frame) -> Any:
    """The table as a ``polars.DataFrame``, a ``pandas.DataFrame`` or an ``awkward.Array``, or as it is.

    Raises InvalidInput for anything else, and ImportError where the library is not installed.
    """
    if to == "arrow":
        return table
    if to not in FRAMES:
        raise InvalidInput(f"tables are given as {', '.join(FRAMES)}, not as {to!r}")
    try:
        library: Any = import_module(to)
    except ImportError as error:
        raise ImportError(f"to={to!r} needs {to}: pip install {to}", name=to) from error
    if to == "polars":
        return library.from_arrow(table)
    if to == "awkward":
        return library.from_arrow(table)
    return table.to_pandas()
