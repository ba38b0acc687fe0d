"""Baselines from measured quantities only, and the table of probabilities that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten
from collidium_tasks.jets.checks import PROBABILITIES


def predictions(jets: pa.Table, bottom: npt.NDArray[Any], charm: npt.NDArray[Any]) -> pa.Table:
    """A row for each jet of table ``jets``, in its order; the remaining probability is that of light jets."""
    table = flatten(jets, ["jet_id"])
    for name, values in zip(PROBABILITIES, (bottom, charm, 1.0 - bottom - charm), strict=True):
        table = table.append_column(name, pa.array(np.clip(values, 0.0, 1.0).astype(np.float32)))
    return table
